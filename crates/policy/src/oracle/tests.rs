use super::*;
use crate::sepol::{self, CilFile, Options};

const POLICY: &str = "(handleunknown deny)(mls true)
(class file (read write relabelfrom))(class process (transition))(class dir (search))(classorder (file process dir))
(sid kernel)(sid security)(sid unlabeled)(sidorder (kernel security unlabeled))
(sensitivity s0)(sensitivity s1)(sensitivityorder (s0 s1))(category c0)(categoryorder (c0))
(sensitivitycategory s0 (c0))(sensitivitycategory s1 (c0))
(user u)(role r)(role object_r)(userrole u r)(userrole u object_r)(userlevel u (s0))(userrange u ((s0) (s1 (c0))))
(type init)(type shell)(type etc)(type log)(type home)
(roletype r init)(roletype r shell)(roletype object_r etc)(roletype object_r log)(roletype object_r home)
(sidcontext kernel (u r init ((s0) (s1 (c0)))))
(sidcontext security (u object_r etc ((s0) (s0))))
(sidcontext unlabeled (u object_r home ((s0) (s0))))
(allow init etc (file (read write)))
(auditallow init etc (file (write)))
(dontaudit init etc (file (relabelfrom)))
(mlsconstrain (file (write)) (dom l1 l2))
(typetransition init etc process shell)
(typemember init etc dir home)
(typechange init etc file log)
(validatetrans file (or (eq t1 t2) (eq t3 init)))
";

fn image(text: &str) -> Vec<u8> {
    let file = CilFile { name: "test.cil".into(), text: text.into() };
    sepol::compile(&[file], &Options { without_lines: true, ..Options::default() }).unwrap().image
}

const INIT: &str = "u:r:init:s0-s1:c0";
const SHELL: &str = "u:r:shell:s0";
const ETC: &str = "u:object_r:etc:s0";
const SECRET: &str = "u:object_r:etc:s1:c0";
const LOG: &str = "u:object_r:log:s0";
// In the order of POLICY's classorder.
const FILE: u32 = 1;
const PROCESS: u32 = 2;
const DIR: u32 = 3;

#[test]
fn gives_contexts_back_and_none_for_what_is_not_valid() {
    let mut oracle = Oracle::load(&image(POLICY)).unwrap();
    for context in [INIT, SHELL, ETC, SECRET] {
        let sid = oracle.sid(context).unwrap();
        assert_eq!(oracle.sid(context), Some(sid));
        assert_eq!(oracle.context(sid).as_deref(), Some(context));
    }
    for context in ["", "u:r:init", "u:r:etc:s0", "v:r:init:s0", "u:r:init:s1-s0", "u:r:init:s0:c1", "u:r:init:s0\0"] {
        assert_eq!(oracle.sid(context), None, "{context:?}");
    }
    // sepol_sidtab_search: what is not there is unlabelled.
    assert_eq!(oracle.context(4711).as_deref(), Some("u:object_r:home:s0"));
}

#[test]
fn grants_what_rules_allow_and_constraints_leave() {
    let mut oracle = Oracle::load(&image(POLICY)).unwrap();
    let [init, etc, secret] = [INIT, ETC, SECRET].map(|context| oracle.sid(context).unwrap());
    let open = oracle.access(init, etc, FILE);
    assert_eq!(open, Access { allowed: 0b011, auditallow: 0b010, auditdeny: !0b100 });
    assert_eq!(oracle.access(init, secret, FILE).allowed, 0b001, "s0 does not dominate s1:c0");
    assert_eq!(oracle.access(etc, init, FILE).allowed, 0);
    let nothing = Access { auditdeny: u32::MAX, ..Access::default() };
    assert_eq!([oracle.access(init, etc, 1 << 16), oracle.access(init, etc, 4)], [nothing; 2], "no such class");
}

#[test]
fn labels_new_members_and_changed_objects() {
    let mut oracle = Oracle::load(&image(POLICY)).unwrap();
    let [init, etc] = [INIT, ETC].map(|context| oracle.sid(context).unwrap());
    let process = oracle.transition(init, etc, PROCESS).and_then(|sid| oracle.context(sid));
    assert_eq!(process.as_deref(), Some("u:r:shell:s0-s1:c0"));
    let member = oracle.member(init, etc, DIR).and_then(|sid| oracle.context(sid));
    assert_eq!(member.as_deref(), Some("u:object_r:home:s0"), "the source's low level");
    let change = oracle.change(init, etc, FILE).and_then(|sid| oracle.context(sid));
    assert_eq!(change.as_deref(), Some("u:object_r:log:s0"));
}

#[test]
fn validates_only_the_changes_that_statements_permit() {
    let mut oracle = Oracle::load(&image(POLICY)).unwrap();
    let [init, shell, etc, log, secret] = [INIT, SHELL, ETC, LOG, SECRET].map(|context| oracle.sid(context).unwrap());
    assert!(oracle.validate(etc, log, init, FILE), "init may");
    assert!(!oracle.validate(etc, log, shell, FILE), "another may not");
    assert!(oracle.validate(etc, secret, shell, FILE), "the type stays");
}

#[test]
fn answers_by_the_policy_that_was_loaded_last() {
    let without = image(&POLICY.replace("(allow init etc (file (read write)))", "(allow init log (file (read)))"));
    let with = image(POLICY);
    let read = |image: &[u8]| {
        let mut oracle = Oracle::load(image).unwrap();
        let [init, etc] = [INIT, ETC].map(|context| oracle.sid(context).unwrap());
        oracle.access(init, etc, FILE).allowed
    };
    assert_eq!([&with, &without, &with].map(|image| read(image)), [0b011, 0, 0b011]);
}

#[test]
fn refuses_what_is_no_policy_and_then_still_loads_one() {
    let image = image(POLICY);
    for bytes in [&[][..], b"SE Linux", &image[..image.len() / 2], &[0xff; 4096]] {
        assert_eq!(Oracle::load(bytes).err(), Some(OracleError));
    }
    Oracle::load(&image).unwrap();
}
