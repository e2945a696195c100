//! The rows of the matrix for all kinds of subjects. The name of a row is the name that users type: a component, or a
//! workload with its kind, such as `deploy/web`.

use jiff::Timestamp;

use super::{release_pin, workload};
use crate::engine::subject::SubjectRef;
use crate::engine::subject::command::Actions;
use crate::engine::world::{Key, World};
use release_pin::matrix::{Cell, Columns};

/// Returns the columns of the matrix for one namespace; for all namespaces if `namespace` is None. The columns are
/// the environments, and the namespaces with workloads that no Environment names.
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

/// Returns the keys of all rows of the matrix. The order is undefined.
pub fn keys(world: &World) -> impl Iterator<Item = &Key> {
    world
        .components()
        .chain(world.workloads().map(|row| &row.key))
}

pub fn has(world: &World, key: &Key) -> bool {
    world.has_component(key) || world.workload(key).is_some()
}

/// Returns the cells of a row, one per column. A cell is None if the row has no subject in that column.
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

/// Returns the cell of a row in a column; None if the row has no subject in that column.
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

/// Returns the subject of a row such as `deploy/web`, with the functions that plan its commands. None for the row of
/// a component.
pub fn named(namespace: &str, row: &str) -> Option<(SubjectRef, &'static Actions)> {
    let (prefix, name) = row.split_once('/')?;
    let kind = super::kinds().find(|kind| kind.prefixes.contains(&prefix))?;
    let actions = kind.actions.as_ref().filter(|_| !name.is_empty())?;
    Some((SubjectRef::new(kind, Key::new(namespace, name)), actions))
}
