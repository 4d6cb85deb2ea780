use super::*;

#[test]
fn names_are_read_and_written_alike_and_mistakes_are_answered_with_what_is_allowed() {
    assert_eq!(find("greedy").unwrap().to_string(), "greedy");
    let error = |text: &str| find(text).err().unwrap().to_string();
    assert!(error("gredy").contains("did you mean 'greedy'"), "{}", error("gredy"));
    assert_eq!(error("greedy:3"), "victims: found 'greedy:3'; allowed: 'greedy', which takes no number");
}
