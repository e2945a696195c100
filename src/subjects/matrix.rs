//! The rows of all subjects in the matrix. The name of a row is the name of its subject on the command line: a
//! component, or a workload with its kind, such as `deploy/web`.

use jiff::Timestamp;

use super::{release_pin, workload};
use crate::engine::subject::SubjectRef;
use crate::engine::subject::command::Actions;
use crate::engine::world::{Key, World};
use release_pin::matrix::{Cell, Columns};

/// Reads the columns of a namespace, or of all namespaces: the environments, and the namespaces of
/// workloads that no environment names.
pub fn columns(world: &World, namespace: Option<&str>) -> Columns {
    let here =
        |row: &&workload::rows::Row| namespace.is_none_or(|name| *name == *row.key.namespace);
    let mut names: Vec<&str> = world
        .workloads()
        .filter(here)
        .map(|row| workload::matrix::column(world, &row.key.namespace))
        .collect();
    names.sort_unstable();
    names.dedup();
    Columns::including(world, namespace, names.into_iter())
}

/// Returns the keys of all rows, in no order.
pub fn keys(world: &World) -> impl Iterator<Item = &Key> {
    world
        .components()
        .chain(world.workloads().map(|row| &row.key))
}

/// Returns whether the matrix has a row with this key.
pub fn has(world: &World, key: &Key) -> bool {
    world.has_component(key) || world.workload(key).is_some()
}

/// Returns a row: one cell per column.
pub fn row<'w>(
    world: &'w World,
    columns: &Columns,
    key: &Key,
    now: Timestamp,
) -> Vec<Option<Cell<'w>>> {
    let all = 0..columns.names().len();
    all.map(|column| cell(world, columns, key, column, now))
        .collect()
}

/// Returns the cell of a row in a column; None if the subject of the row is not in the column.
pub fn cell<'w>(
    world: &'w World,
    columns: &Columns,
    key: &Key,
    column: usize,
    now: Timestamp,
) -> Option<Cell<'w>> {
    match world.workload(key) {
        Some(_) => workload::matrix::cell(world, columns, key, column, now),
        None => release_pin::matrix::cell(world, columns, key, column, now),
    }
}

/// Returns the subject of a row whose name contains the kind, such as `deploy/web`, and the
/// functions of that kind. None for a row of a component.
pub fn named(namespace: &str, row: &str) -> Option<(SubjectRef, &'static Actions)> {
    let (prefix, name) = row.split_once('/')?;
    let kind = super::kinds().find(|kind| kind.prefixes.contains(&prefix))?;
    let actions = kind.actions.as_ref().filter(|_| !name.is_empty())?;
    Some((SubjectRef::new(kind, Key::new(namespace, name)), actions))
}
