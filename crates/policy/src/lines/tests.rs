use super::*;

fn marked(text: &str) -> String {
    String::from_utf8(mark(text.as_bytes(), 3)).unwrap()
}

#[test]
fn marks_every_statement_with_its_line() {
    let text = marked("(type a)\n; (type no)\n(block b\n (type c))(type d)");
    let marks: Vec<&str> = text.lines().filter(|line| line.starts_with(";;* lmx")).collect();
    assert_eq!(marks, [";;* lmx 1 f3", ";;* lmx 3 f3", ";;* lmx 4 f3", ";;* lmx 4 f3"], "{text}");
    assert_eq!(text.matches(";;* lme").count(), 4);
    assert!(!text.contains("(type no)"));
}

#[test]
fn marks_nothing_inside_macros_and_conditions_but_tells_the_lines_of_branches() {
    let text = marked("(macro m ((type x))\n (allow x (self) (file (read))))\n(allow a b (file (read)))");
    assert_eq!(text.matches(";;* lmx").count(), 2, "{text}");
    let text = marked("(booleanif (and x y)\n (true\n (allow a b (f (r)))\n (call m (a)))\n(false (allow\na b c)))");
    let marks: Vec<&str> = text.lines().filter(|line| line.starts_with(";;* lmx")).collect();
    assert_eq!(marks, [";;* lmx 1 f3:3,4,5"], "{text}");
    let text = marked("(booleanif x (true (tunableif y (true (allow a b (f (r)))))))");
    assert!(text.contains("lmx 1 f3\n"), "{text}");
    assert_eq!(text.matches(";;* lmx").count(), 1, "{text}");
}

#[test]
fn takes_quotes_and_parentheses_in_them_as_one_word() {
    let text = marked("(filecon \"/a(/.*)?;\" any (u r t (s s)))\n(type a)");
    assert_eq!(text.matches(";;* lmx").count(), 2, "{text}");
    assert!(text.contains("\"/a(/.*)?;\""), "{text}");
}

#[test]
fn gives_back_what_was_written() {
    let lines = Lines {
        files: vec!["a.cil".into()],
        statements: vec![Statement { file: 0, line: 7, text: "(type a)".into() }],
        missing: Some("no".into()),
    };
    assert_eq!(Lines::from_bytes(&lines.to_bytes()), Ok(lines.clone()));
    let bytes = lines.to_bytes();
    for end in 0..bytes.len() {
        assert!(Lines::from_bytes(&bytes[..end]).is_err(), "{end}");
    }
    assert_eq!(Lines::from_bytes(&[&bytes[..], b"x"].concat()), Err(LinesError::Trailing(1)));
}

#[test]
fn rejects_a_statement_of_no_file() {
    let lines = Lines { statements: vec![Statement { file: 0, line: 7, text: String::new() }], ..Lines::default() };
    assert_eq!(Lines::from_bytes(&lines.to_bytes()), Err(LinesError::File { file: 0, files: 0 }));
}

#[test]
fn leaves_out_templates_and_wraps_conditions() {
    let resolved = "\
;;* lms 1 f0
;;* lmx 1 f0
(macro m ((type x))
    (allow x x (file (read)))
)
;;* lme
;;* lmx 3 f0:4,5,6
(booleanif (b)
    (true
        (allow a a (file (read)))
        (call m (a)
            (allow m m (file (read)))
        )
    )
    (false
        (allow a b (file (read)))
    )
)
;;* lme
(block n
    ;;* lmx 6 f0
    (type n.t)
    ;;* lme
    (blockabstract n)
    ;;* lmx 7 f0
    (type n.u)
    ;;* lme
)
;;* lmx 9 f0
(type z)
;;* lme
;;* lme
";
    let lines = Lines::from_resolved(vec!["a.cil".into()], resolved);
    let told: Vec<(u32, &str)> = lines.statements.iter().map(|s| (s.line, s.text.as_str())).collect();
    assert_eq!(
        told,
        [
            (4, "(booleanif (b) (true (allow a a (file (read)))))"),
            (5, "(booleanif (b) (true (allow m m (file (read)))))"),
            (6, "(booleanif (b) (false (allow a b (file (read)))))"),
            (9, "(type z)")
        ]
    );
    assert_eq!(lines.place(&lines.statements[3]), "a.cil:9");
}

#[test]
fn fuzz_lines_are_lines_or_errors() {
    let statement = |line: u32| Statement { file: line % 2, line, text: format!("(type t{line})") };
    let lines = Lines {
        files: vec!["a.cil".into(), "ä.cil".into()],
        statements: (1..20).map(statement).collect(),
        missing: None,
    };
    let (good, missing) = (lines.to_bytes(), Lines::missing("no reason").to_bytes());
    let mut whole = 0_u64;
    crate::fuzz::run(&[&good, &missing], |bytes| {
        if let Ok(lines) = Lines::from_bytes(bytes) {
            whole += 1;
            lines.statements.iter().for_each(|statement| assert!(!lines.place(statement).is_empty()));
        }
    });
    assert!(whole > 0, "no mutation was read whole");
}
