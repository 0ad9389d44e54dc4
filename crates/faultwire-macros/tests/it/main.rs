//! What compiles, what does not, and what the compiler says then.

#[test]
fn k3_w9_mistakes_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/compile/right.rs");
    cases.compile_fail("tests/compile/wrong_*.rs");
}
