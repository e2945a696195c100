//! Compaction: removes the history (replaced rows) in small steps, so that the file has at most about twice the size
//! of its live data.

use rusqlite::{Connection, TransactionBehavior, params};

use super::{Event, Revision, open, read};

/// The approximate size of a row without its JSON, in bytes: the other columns, the index entry, and the page
/// headers.
pub(super) const ROW_OVERHEAD: usize = 160;
/// The largest number of rows of the log that one step goes through. The number is small so that a writer never waits
/// long.
const STEP_ROWS: usize = 512;
/// A step with bounds stops after it has removed this many bytes.
const STEP_BYTES: u64 = 16 << 20;
/// The largest number of free pages that one step returns to the file system.
const STEP_PAGES: u32 = 1024;

/// The limit for the size of the history, which consists of all replaced rows.
pub(super) struct Bounds {
    /// The size in bytes that the history may always have, however small the live data is.
    floor: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { floor: 4 << 20 }
    }
}

impl Bounds {
    /// Returns whether the history is too large: larger than the floor, and larger than half of the live data. `dead`
    /// is the size of the history.
    pub(super) fn exceeded(&self, live: u64, dead: u64) -> bool {
        dead > self.floor.max(live / 2)
    }

    /// Returns the size in bytes to which compaction reduces the history.
    fn target(&self, live: u64) -> u64 {
        self.floor.max(live / 2) / 2
    }
}

/// Runs one step of compaction, and returns free pages of the file to the file system. Returns whether more work is
/// left.
///
/// `urgent` means that writers may be waiting, so the step leaves more free pages in the file to save time.
pub(super) fn tidy(
    connection: &mut Connection,
    bounds: &Bounds,
    urgent: bool,
) -> rusqlite::Result<bool> {
    let live = read::state(connection, "live")?;
    let dead = read::state(connection, "dead")?;
    let more = bounds.exceeded(live, dead);
    if more {
        forget(connection, Some(bounds))?;
    }
    // If writers may be waiting, a larger share of the file may be free pages.
    let share = if urgent { 4 } else { 8 };
    Ok(give_back(connection, share)? || more)
}

/// Removes the whole history, and returns the newest revision that was compacted.
pub(super) fn everything(connection: &mut Connection) -> rusqlite::Result<Revision> {
    let newest = open::newest(connection)?;
    loop {
        let compacted = forget(connection, None)?;
        if compacted >= newest {
            while give_back(connection, 8)? {}
            return Ok(compacted);
        }
    }
}

/// Does one step in one transaction: removes the oldest rows of the history, and returns the newest compacted revision.
/// With `bounds`, stops when the history is small enough; without, removes rows up to the end of the log.
fn forget(connection: &mut Connection, bounds: Option<&Bounds>) -> rusqlite::Result<Revision> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // The sizes are read inside the transaction, because another process may have compacted the file in between.
    let (live, dead) = (
        read::state(&transaction, "live")?,
        read::state(&transaction, "dead")?,
    );
    let bytes = bounds.map(|bounds| dead.saturating_sub(bounds.target(live)).min(STEP_BYTES));
    let mut compacted = read::state(&transaction, "compacted")?;
    let mut freed = 0u64;
    let mut end = None;
    {
        let mut log = transaction.prepare_cached(
            "SELECT l.id, l.event, l.size, l.previous, p.size
             FROM log l LEFT JOIN log p ON p.id = l.previous
             WHERE l.id > ?1 AND (l.previous > 0 OR l.event = 2) ORDER BY l.id LIMIT ?2",
        )?;
        let mut remove = transaction.prepare_cached("DELETE FROM log WHERE id = ?1")?;
        let page: Vec<(Revision, i64, u64, Revision, Option<u64>)> = log
            .query_map(params![compacted, STEP_ROWS], |row| {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                ))
            })?
            .collect::<Result<_, _>>()?;
        if page.len() < STEP_ROWS && bytes.is_none() {
            end = Some(open::newest(&transaction)?);
        }
        for (id, event, size, previous, previous_size) in page {
            if bytes.is_some_and(|bytes| freed >= bytes) {
                break;
            }
            if let Some(size) = previous_size {
                remove.execute([previous])?;
                freed += size;
            }
            if event == Event::Deleted as i64 {
                remove.execute([id])?;
                freed += size;
            }
            compacted = id;
        }
    }
    let compacted = end.unwrap_or(compacted);
    transaction.execute(
        "UPDATE state SET value = ?1 WHERE name = 'compacted'",
        [compacted],
    )?;
    transaction.execute(
        "UPDATE state SET value = max(0, value - ?1) WHERE name = 'dead'",
        [freed as i64],
    )?;
    transaction.commit()?;
    Ok(compacted)
}

/// Returns free pages to the file system, if more than `all / share` of all pages are free. Returns whether it did.
fn give_back(connection: &Connection, share: u64) -> rusqlite::Result<bool> {
    let count = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    let (free, all) = (count("freelist_count")?, count("page_count")?);
    if free <= (all / share).max(256) {
        return Ok(false);
    }
    let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({STEP_PAGES})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(true)
}
