//! Finds the fields that an expression selects from a variable, so that a caller can compare them with a
//! schema.

use super::tree::{Loop, Node};

/// Returns the fields that the expression selects from a variable: `[a, b]` for `self.a.b`.
pub(super) fn chains<'n>(root: &'n Node, name: &str) -> Vec<Vec<&'n str>> {
    let mut found = Vec::new();
    visit(root, name, &mut found);
    found
}

fn chain<'n>(node: &'n Node, name: &str) -> Option<Vec<&'n str>> {
    match node {
        Node::Name(found) => (found == name).then(Vec::new),
        Node::Select {
            of,
            field,
            optional: false,
        }
        | Node::Has { of, field } => {
            let mut fields = chain(of, name)?;
            fields.push(field.property.as_deref().unwrap_or(&field.written));
            Some(fields)
        }
        _ => None,
    }
}

fn visit<'n>(node: &'n Node, name: &str, found: &mut Vec<Vec<&'n str>>) {
    match node {
        Node::Constant(_) | Node::Name(_) => {}
        Node::Select { of, .. } | Node::Has { of, .. } => match chain(node, name) {
            Some(fields) => found.push(fields),
            None => visit(of, name, found),
        },
        Node::Index { of, key, .. } => {
            visit(of, name, found);
            visit(key, name, found);
        }
        Node::And(pair) | Node::Or(pair) | Node::Binary(_, pair) => {
            pair.iter().for_each(|part| visit(part, name, found));
        }
        Node::Not(part) | Node::Negate(part) => visit(part, name, found),
        Node::Choose(parts) => parts.iter().for_each(|part| visit(part, name, found)),
        Node::List(items) => items.iter().for_each(|(item, _)| visit(item, name, found)),
        Node::Map(entries) => {
            for (key, value, _) in entries {
                visit(key, name, found);
                visit(value, name, found);
            }
        }
        Node::Loop(each) => visit_loop(each, name, found),
        Node::Call(call) => call.args.iter().for_each(|arg| visit(arg, name, found)),
    }
}

fn visit_loop<'n>(each: &'n Loop, name: &str, found: &mut Vec<Vec<&'n str>>) {
    visit(&each.range, name, found);
    if each.variable == name || each.value_variable.as_deref() == Some(name) {
        return;
    }
    for part in each.filter.iter().chain([&each.body]) {
        visit(part, name, found);
    }
}
