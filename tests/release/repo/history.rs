//! Tests of the verbs history, diff and audit on a repository, where they read the git log.

use super::{Shop, pin};

#[test]
fn the_revisions_of_a_pin_come_from_the_log_of_its_file() {
    let shop = Shop::open(&["cart"]);
    shop.ends(
        "promote cart --from dev --to staging --reason first",
        0,
        "revision 2",
    );
    // The history contains a rename of the file, an added comment, and a move by hand.
    std::fs::create_dir_all(shop.root.join("moved")).unwrap();
    shop.git("mv pins/staging/cart.yaml moved/there.yaml");
    shop.commit("tidy up");
    let text = shop.read("moved/there.yaml");
    shop.write("moved/there.yaml", &format!("# a comment\n{text}"));
    shop.commit("explain");
    shop.write(
        "moved/there.yaml",
        &format!("# a comment\n{}", text.replace("cart-2", "cart-3")),
    );
    shop.git("config user.name Bob");
    shop.commit("cart 3 by hand");
    let ran = shop.ends("history cart -e staging", 0, "cart-3");
    let rows: Vec<Vec<&str>> = ran
        .out
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let brief: Vec<(&str, &str, &str)> = rows[1..]
        .iter()
        .map(|row| (row[0], row[1], row[2]))
        .collect();
    assert_eq!(
        brief,
        [
            ("3", "cart-3", "Edit"),
            ("2", "cart-2", "Promote"),
            ("1", "cart-1", "Edit")
        ],
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains("Bob <ana@example.com>") && ran.out.contains("first"),
        "{}",
        ran.out
    );
    shop.ends(
        "rollback cart -e staging --to-revision 2 --no-hold",
        0,
        "cart-3 -> cart-2",
    );
    shop.ends("diff cart -e staging", 0, "");
    let diff = shop.run("revisions diff cart/staging --from 2 --to 3");
    assert!(diff.out.contains("shop/cart:3"), "{diff:?}");
    let list = shop.ends("audit list cart", 0, "cart-staging-");
    assert!(
        list.out.contains("Rollback") && list.out.contains("Promote"),
        "{}",
        list.out
    );
    shop.ends("audit export cart --environment staging", 0, "first");
    let verified = shop.ends("audit verify", 0, "valid, 1 warning");
    assert!(
        verified.out.contains("edited by hand by Bob"),
        "{}",
        verified.out
    );

    // The history shows a merged change as its original commit.
    shop.git("switch -q -c side");
    shop.ends(
        "rollback cart -e staging --to cart-3 --no-hold --reason in-the-side",
        0,
        "cart-2 -> cart-3",
    );
    shop.git("switch -q main");
    shop.write("notes.txt", "main\n");
    shop.commit("meanwhile");
    shop.git("merge -q --no-ff -m merge side");
    let ran = shop.ends("history cart -e staging", 0, "");
    let newest: Vec<&str> = ran.out.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(newest[..3], ["5", "cart-3", "Rollback"], "{}", ran.out);
    assert!(ran.out.contains("in-the-side"), "{}", ran.out);

    // `audit verify` finds a commit whose trailers do not match its change.
    shop.write("pins/prod/cart.yaml", &pin("cart", "prod", "cart-2"));
    shop.git("add -A");
    shop.git_words(&[
        "commit", "-q", "-m",
        "promote cart-3 to prod\n\nBowline-Operation: x\nBowline-Action: Promote\nBowline-Component: cart\nBowline-Environment: prod\nBowline-From: cart-1\nBowline-To: cart-3",
    ]);
    let verified = shop.ends(
        "audit verify",
        1,
        "its trailers say that the effective release is cart-3, and it is cart-2",
    );
    assert!(verified.out.contains("tampered"), "{}", verified.out);
}

#[test]
fn the_removal_of_a_pin_is_verified() {
    const FILE: &str = "pins/prod/cart.yaml";
    let by_hand = |shop: &Shop, words: &[&str]| {
        let ran = shop.ends("audit verify", 0, "");
        for words in words {
            assert!(ran.out.contains(words), "no {words:?} in {}", ran.out);
        }
    };
    let shop = Shop::open(&["cart"]);
    std::fs::remove_file(shop.root.join(FILE)).unwrap();
    shop.commit("remove");
    let removed = "ReleasePin cart-prod was removed by hand by";
    by_hand(&shop, &[removed, "it named cart-1"]);
    shop.write(FILE, &super::pin("cart", "prod", "cart-3"));
    shop.commit("add");
    by_hand(
        &shop,
        &[removed, "was created again by hand by", "with cart-3"],
    );
}

#[test]
fn a_commit_with_trailers_removes_and_moves_no_other_pin() {
    const FILE: &str = "pins/prod/cart.yaml";
    let other =
        |place: &str| super::pin("cart", "prod", "cart-1").replace("namespace: shop", place);
    type Change<'c> = &'c dyn Fn(&Shop);
    let cases: [Change<'_>; 4] = [
        &|shop| std::fs::remove_file(shop.root.join(FILE)).unwrap(),
        &|shop| shop.write(FILE, &other("namespace: other")),
        &|shop| {
            let text = super::pin("cart", "prod", "cart-1");
            shop.write(
                FILE,
                &text.replace("environment: prod", "environment: staging"),
            );
        },
        &|shop| {
            shop.write("c/Chart.yaml", "name: c\n");
            std::fs::create_dir_all(shop.root.join("c/templates")).unwrap();
            let template = shop.root.join("c/templates/cart.yaml");
            std::fs::rename(shop.root.join(FILE), template).unwrap();
        },
    ];
    for (at, change) in cases.into_iter().enumerate() {
        let shop = Shop::open(&["cart"]);
        shop.ends("promote cart --from dev --to staging", 0, "");
        shop.ends("audit verify", 0, "valid");
        change(&shop);
        shop.git("add -A");
        shop.git("commit -q --amend --no-edit");
        let ran = shop.run("audit verify");
        assert_eq!(ran.code, 1, "{at}: {}{}", ran.out, ran.err);
        assert!(ran.out.contains("cart-prod"), "{at}: {}", ran.out);
    }
}

#[test]
fn the_removal_of_a_release_that_a_pin_names_is_told() {
    let shop = Shop::open(&["cart"]);
    std::fs::remove_file(shop.root.join("releases/cart/cart-1.yaml")).unwrap();
    shop.commit("remove");
    let words = "ReleasePin cart-prod names release cart-1, which does not exist";
    shop.ends("audit verify", 0, words);
}
