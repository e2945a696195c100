use crate::screens::history::tests::opened;

#[test]
fn golden_screens() {
    opened("g v").keys("j j space space").golden("revisions");
}

#[test]
fn it_says_what_is_selected_and_where_there_is_nothing() {
    opened("g v")
        .shows("promoted by ana: \"INC-42 hotfix\"")
        .keys("j j j j")
        .shows("cannot be compared or restored")
        .keys("p")
        .hides("cannot be compared");
}

#[test]
fn revisions_are_filtered() {
    let still = opened("g v").keys("/").keys("\"hotfix\"").keys("enter");
    still
        .shows("/hotfix")
        .shows("v1.2.3")
        .hides("v1.2.2 bad")
        .keys("/")
        .keys("\"zzz\"")
        .shows("no row matches the filter")
        .keys("enter esc")
        .shows("v1.2.2 bad");
}
