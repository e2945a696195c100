//! One suite for the embedded API and for a real kube-apiserver.

#[test]
fn the_program_is_called_bowline() {
    assert_eq!(env!("CARGO_PKG_NAME"), "bowline");
}
