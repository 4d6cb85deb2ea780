use super::*;

#[test]
fn names_are_read_and_written_alike_and_mistakes_are_answered_with_what_is_allowed() {
    for name in ["greedy", "cost-benefit", "d-choices:1", "d-choices:64", "fifo"] {
        assert_eq!(find(name).unwrap().to_string(), name);
    }
    let error = |text: &str| find(text).err().unwrap().to_string();
    assert!(error("gredy").contains("did you mean 'greedy'"), "{}", error("gredy"));
    assert_eq!(error("greedy:3"), "victims: found 'greedy:3'; allowed: 'greedy', which takes no number");
    let error_of_number = "d-choices:D with a number of draws D of 1 to 64, e.g. d-choices:10";
    for text in ["d-choices", "d-choices:", "d-choices:0", "d-choices:65", "d-choices:-1", "d-choices:ten"] {
        assert_eq!(error(text), format!("victims: found '{text}'; allowed: {error_of_number}"));
    }
    assert!(error("d-choice:10").contains("did you mean 'd-choices:D'"), "{}", error("d-choice:10"));
}
