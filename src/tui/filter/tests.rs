use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::engine::world::{Event, World};
use crate::fixture::*;
use crate::subjects::release_pin::matrix::Columns;

fn fleet() -> World {
    let mut world = world();
    for (version, minute) in [("v1.2.1", 1), ("v1.2.2", 2), ("v1.3.0-RC1", 3)] {
        world.releases(Event::Applied(release("checkout", version, minute)));
        world.releases(Event::Applied(release("cart", version, minute)));
    }
    world.releases(Event::Applied(marked_bad(release("cart", "v1.2.2", 2))));
    let dev = labelled(
        pin("checkout", "development", "v1.3.0-RC1"),
        "team",
        "payments",
    );
    world.pins(Event::Applied(dev));
    world.pins(Event::Applied(pin("checkout", "staging", "v1.2.2")));
    let mut broken = unready(
        pin("checkout", "production", "v1.2.1"),
        "Degraded",
        "0 of 3 ready",
        "13:00:00",
    );
    broken
        .annotations_mut()
        .insert("bowline.dev/changed-by".to_owned(), "ana".to_owned());
    world.pins(Event::Applied(broken));
    let holds = json!([{"id": "a", "owner": "tom", "since": "2026-11-17T09:00:00Z"}]);
    let cart = held(pin("cart", "staging", "v1.2.2"), holds);
    let cart = unready(cart, "Progressing", "1 of 3 ready", "13:00:00");
    world.pins(Event::Applied(labelled(cart, "team", "shop")));
    world.releases(Event::Applied(release("idle", "v7", 4)));
    world
}

use kube::ResourceExt;

/// Returns the names of the components that match a filter.
fn kept(world: &World, text: &str) -> String {
    let Read { filter, problem } = read(text);
    assert_eq!(problem, None, "{text}");
    let columns = Columns::of(world, Some("shop"));
    let view = View {
        world,
        columns: &columns,
        user: "ana",
        now: now(),
    };
    let matcher = Matcher::new(&filter, columns.names());
    let kept = ["cart", "checkout", "idle"].into_iter().filter(|name| {
        let facts = Facts::of_component(&view, &key(name));
        matcher.keeps(&facts, *name == "idle")
    });
    kept.collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_kept() {
    let world = fleet();
    for (text, expected) in [
        ("", "cart checkout idle"),
        ("   ", "cart checkout idle"),
        ("c", "cart checkout"),
        ("c out", "checkout"),
        ("CHECK", ""),
        ("v1.2.2", "cart checkout"),
        ("checkout-v1.2", "checkout"),
        ("rc1", "checkout"),
        ("RC1", "checkout"),
        ("Rc1", ""),
        ("!c", "idle"),
        ("!!c", "cart checkout"),
        ("prod", "checkout"),
        ("!prod", "cart idle"),
        ("\"c\" !\"out\"", "cart"),
        ("re:^c.r", "cart"),
        ("re:^v1\\.2", "cart checkout"),
        ("re:^V1\\.2", ""),
        ("re:^\\S+art$", "cart"),
        ("re:^production$", "checkout"),
        ("!re:^c", "idle"),
        ("-l team", "cart checkout"),
        ("-l team=payments", "checkout"),
        ("-l team==payments", "checkout"),
        ("-l team = shop", "cart"),
        ("-l team in (shop, payments)", "cart checkout"),
        (
            "-l team in (shop),openchoreo.dev/environment=staging",
            "cart",
        ),
        (
            "-l team in (payments),openchoreo.dev/environment=staging",
            "",
        ),
        ("!-l team", "idle"),
        ("-l team!=shop,team", "checkout"),
        ("-l team notin (shop),team", "checkout"),
        ("-l openchoreo.dev/component=cart out", ""),
        ("health:degraded", "checkout"),
        ("health:deg", "checkout"),
        ("!health:degraded", "cart idle"),
        ("health:progressing", "cart"),
        ("fault", "checkout"),
        ("failing", "checkout"),
        ("health:failing", "checkout"),
        ("degraded", "checkout"),
        ("!degraded", "cart idle"),
        ("progressing", "cart"),
        ("rolling", "cart"),
        ("ready", "checkout"),
        ("health:healthy", "checkout"),
        ("missing", ""),
        ("behind", "checkout"),
        ("pinned", "cart"),
        ("\"degraded\"", ""),
        ("behind:>0", "checkout"),
        ("behind:1", "checkout"),
        ("behind:=1", "checkout"),
        ("behind:>1", ""),
        ("behind:<=0", ""),
        ("held", "cart"),
        ("!held", "checkout idle"),
        ("bad", "cart"),
        ("mine", "checkout"),
        ("marked", "idle"),
        ("!marked", "cart checkout"),
        ("env:staging", "cart checkout"),
        ("env:stag", "cart checkout"),
        ("!env:production", "cart idle"),
        ("env:production health:ready", ""),
        ("env:staging health:ready", "checkout"),
        ("env:staging !held", "checkout"),
        ("env:production !held", "checkout"),
        ("health:ready behind:>0", "checkout"),
        ("health:degraded behind:>1", ""),
        ("release:v1.2*", "cart checkout"),
        ("release:v1.2*  env:development", ""),
        ("release:v1.2", ""),
        ("release:checkout-v1.2.1 health:degraded", "checkout"),
        ("release:v1.2.2 health:degraded", ""),
        ("!release:v1.2.1", "cart idle"),
    ] {
        assert_eq!(kept(&world, text), expected, "{text}");
    }
}

#[test]
fn other_lists_are_filtered_by_the_same_words() {
    let world = fleet();
    let columns = Columns::of(&world, Some("shop"));
    let view = View {
        world: &world,
        columns: &columns,
        user: "ana",
        now: now(),
    };
    let keeps = |facts: &Facts, text: &str| {
        let Read { filter, problem } = read(text);
        assert_eq!(problem, None, "{text}");
        Matcher::new(&filter, columns.names()).keeps(facts, false)
    };
    let pin = Facts::of_pin(&view, world.pin(&key("checkout-production")).unwrap());
    let bad = Facts::of_release(&view, world.release(&key("cart-v1.2.2")).unwrap());
    let unused = Facts::of_release(&view, world.release(&key("idle-v7")).unwrap());
    for (facts, text, expected) in [
        (&pin, "health:degraded env:production mine", true),
        (&pin, "env:staging", false),
        (&pin, "release:v1.2.1 behind:1", true),
        (&pin, "-l openchoreo.dev/environment=production", true),
        (&bad, "bad held env:staging", true),
        (&bad, "release:v1.2.2", true),
        (&bad, "-l openchoreo.dev/component=cart", true),
        (&unused, "bad", false),
        (&unused, "release:v7 !env:staging", true),
        (&unused, "health:ready", false),
    ] {
        assert_eq!(keeps(facts, text), expected, "{text}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_column() {
    for (text, rest, column, incomplete, word) in [
        ("health:purple", "", 7, true, "degraded"),
        ("a health:purple b", "a b", 9, false, "degraded"),
        ("cart health:", "cart", 12, true, "degraded, failing"),
        ("behind:x", "", 7, true, "behind:>0"),
        ("behind:>", "", 7, true, "behind:>0"),
        ("re:(a b", "b", 3, false, "unclosed"),
        ("cart re:[", "cart", 8, true, "unclosed"),
        ("cart !", "cart", 5, true, "after it"),
        ("! cart", "cart", 0, false, "after it"),
        ("color:red", "", 0, true, "quotes"),
        ("é color:red", "é", 2, true, "quotes"),
        ("-l", "", 2, true, "the name of a label"),
        ("cart -l ", "cart", 8, true, "the name of a label"),
        ("-l a=", "", 5, true, "a value"),
        ("-l a=b,", "", 7, true, "the name of a label"),
        ("-l a in (b", "", 10, true, "incomplete"),
        ("-l a in (b;c) d", "d", 10, false, "';'"),
        ("-l a=b;c d", "d", 6, false, "';'"),
        ("\"\"", "", 0, true, "empty"),
        ("\"a\"b c", "c", 0, false, "space"),
    ] {
        let read = read(text);
        let problem = read.problem.unwrap_or_else(|| panic!("{text} is fine"));
        assert_eq!(
            (problem.column, problem.incomplete),
            (column, incomplete),
            "{text}: {problem}"
        );
        assert!(problem.message.contains(word), "{text}: {problem}");
        assert_eq!(read.filter.to_string(), rest, "{text}");
    }
    // The end of the text closes an open quote, because the user may still be typing.
    assert_eq!(read("\"a b").filter.to_string(), "\"a b\"");
    assert_eq!(read("\"a b").problem, None);
}

#[test]
fn what_narrows_is_known() {
    for (old, new, expected) in [
        ("", "a", true),
        ("a", "ab", true),
        ("a", "ab c", true),
        ("a", "aB", true),
        ("A", "Ab", true),
        ("A", "a", false),
        ("ab", "a", false),
        ("!a", "!ab", false),
        ("a !b", "ac !b", true),
        ("re:a", "re:a|b", false),
        ("re:a", "re:a held", true),
        ("held", "held bad", true),
        ("held", "!held", false),
        ("!held", "!held env:production", false),
        ("!held env:production", "!held", false),
        ("held", "held env:production", true),
        ("env:a", "env:ab", false),
    ] {
        let (old, new) = (read(old).filter, read(new).filter);
        assert_eq!(new.narrows(&old), expected, "{old} -> {new}");
    }
}

#[test]
fn a_term_can_be_turned_on_and_off() {
    let mut filter = read("cart").filter;
    let fault = Term::new(Ask::Place(CellCondition::Fault));
    filter.toggle(fault.clone());
    assert_eq!(filter.to_string(), "cart fault");
    filter.toggle(fault);
    assert_eq!(filter.to_string(), "cart");
}

/// Generates random texts, many of which look like filters.
fn typed() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z.*?-]{1,4}",
        "\\PC{0,3}",
        Just(" ".to_owned()),
        prop::sample::select(vec![
            "!", "\"", "\\", "re:", "(", ")", "[", "-l ", "=", "!=", "==", " in (", " notin (",
            ",", "health:", "degraded", "behind:", ">", "3", "env:", "release:", "held", "bad",
            "mine", "marked", "fault", ":", "\n",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

#[test]
fn in_a_text_what_is_no_expression_is_a_word() {
    let word = |text: &str| Term::new(Ask::Word(text.to_owned()));
    for (text, expected) in [
        ("image:", vec![word("image:")]),
        ("env:dev name", vec![word("env:dev"), word("name")]),
        ("-l a=b", vec![word("-l"), word("a=b")]),
        ("\"a b\"", vec![word("a b")]),
        (
            "re:v[0-9] held",
            vec![Term::new(Ask::Pattern("v[0-9]".to_owned())), word("held")],
        ),
    ] {
        let read = words(text);
        assert_eq!(
            (read.filter.terms, read.problem),
            (expected, None),
            "{text}"
        );
    }
}

proptest! {
    #[test]
    fn a_printed_filter_reads_as_the_same(text in typed()) {
        let first = read(&text).filter;
        let again = read(&first.to_string());
        prop_assert_eq!(&again.problem, &None, "{} printed as {}", text, first);
        prop_assert_eq!(again.filter, first);
    }

    #[test]
    fn the_column_of_a_problem_is_in_the_text(text in typed()) {
        if let Some(problem) = read(&text).problem {
            prop_assert!(problem.column <= text.chars().count());
            prop_assert!(!problem.message.is_empty());
        }
    }

    #[test]
    fn what_narrows_keeps_no_more(old in typed(), more in typed()) {
        let world = fleet();
        let columns = Columns::of(&world, Some("shop"));
        let view = View { world: &world, columns: &columns, user: "ana", now: now() };
        let (old, new) = (read(&old).filter, read(&format!("{old}{more}")).filter);
        if new.narrows(&old) {
            let names: &[Arc<str>] = columns.names();
            let (old, new) = (Matcher::new(&old, names), Matcher::new(&new, names));
            for name in ["cart", "checkout", "idle"] {
                let facts = Facts::of_component(&view, &key(name));
                prop_assert!(old.keeps(&facts, false) || !new.keeps(&facts, false));
            }
        }
    }
}

#[test]
fn the_last_word_is_completed() {
    let environments = ["staging".to_owned(), "production".to_owned()];
    let releases = ["cart-v2".to_owned()];
    for (text, expected) in [
        ("de", "degraded"),
        ("cart !he", "!health: !held !healthy"),
        ("health:p", "health:progressing"),
        ("env:", "env:staging env:production"),
        ("a release:c", "release:cart-v2"),
        ("zz", ""),
    ] {
        let found = completions(text, &environments, &releases);
        assert_eq!(found.join(" "), expected, "{text}");
    }
    assert!(completions("", &environments, &releases).len() > 10);
}

#[test]
fn in_a_list_without_fields_a_field_is_wrong() {
    for (text, terms, problem) in [
        ("held", 1, None),
        ("held env:x", 1, Some(5)),
        ("!health:x", 0, Some(0)),
        ("image:x", 1, None),
        ("\"env:x\"", 1, None),
        ("re:[", 0, Some(3)),
    ] {
        let read = list_words(text);
        assert_eq!(read.filter.terms.len(), terms, "{text}");
        assert_eq!(read.problem.map(|it| it.column), problem, "{text}");
    }
}

#[test]
fn in_a_text_only_an_expression_can_be_wrong() {
    for (text, terms, problem) in [
        ("held env:x", 2, None),
        ("image: re:^a", 2, None),
        ("image: re:[", 1, Some(10)),
    ] {
        let read = words(text);
        assert_eq!(read.filter.terms.len(), terms, "{text}");
        assert_eq!(read.problem.map(|it| it.column), problem, "{text}");
    }
}
