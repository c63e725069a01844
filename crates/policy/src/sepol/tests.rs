use super::*;

const SMALL: &str = "(handleunknown deny)
(mls true)
(policycap open_perms)
(class file (read write))
(class process (transition))
(classorder (file process))
(sid kernel)
(sidorder (kernel))
(sensitivity s0)
(sensitivityorder (s0))
(category c0)
(categoryorder (c0))
(sensitivitycategory s0 (c0))
(user system_u)
(role system_r)
(role object_r)
(roletype object_r file_t)
(userrole system_u system_r)
(userrole system_u object_r)
(userlevel system_u (s0))
(userrange system_u ((s0) (s0 (c0))))
(type kernel_t)
(type file_t)
(roletype system_r kernel_t)
(boolean tune false)
(sidcontext kernel (system_u system_r kernel_t ((s0) (s0))))
(macro reads ((type source))
    (allow source file_t (file (read))))
(block web
    (type t)
    (optional more
        (call reads (t))))
(booleanif tune
    (true
        (allow kernel_t file_t (file (write)))))
(filecon \"/a(/.*)?\" file (system_u object_r file_t ((s0) (s0))))
";

fn small() -> Vec<CilFile> {
    vec![CilFile { name: "small.cil".into(), text: SMALL.into() }]
}

fn compiled() -> Compiled {
    compile(&small(), &Options::default()).unwrap()
}

#[test]
fn compiles_a_policy_with_model_places_and_file_contexts() {
    let policy = compiled();
    assert_eq!(policy.image[..4], POLICY_MAGIC.to_le_bytes());
    let model = crate::dump::read(&policy.model).unwrap();
    assert_eq!(model.version, VERSION);
    assert!(model.types.iter().any(|type_| type_.name == "web.t"));
    assert_eq!(policy.file_contexts, "/a(/.*)?\t--\tsystem_u:object_r:file_t:s0\n");
    let places: Vec<String> = policy
        .lines
        .statements
        .iter()
        .filter(|statement| statement.text.contains("(allow"))
        .map(|statement| format!("{} {}", policy.lines.place(statement), statement.text))
        .collect();
    assert_eq!(policy.lines.missing, None);
    assert_eq!(
        places,
        [
            "small.cil:32 (allow web.t file_t (file (read)))",
            "small.cil:35 (booleanif (tune) (true (allow kernel_t file_t (file (write)))))"
        ]
    );
}
