//! The sums that each scrape computes: the number and bytes of stored objects, and the counters of the git
//! reader.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::PoisonError;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::Sources;
use crate::engine::world::{Key, Source, World};

/// The collector that computes the sums at each scrape.
pub(super) struct Stored(pub(super) Sources);

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stored")
    }
}

/// A number of objects and their total size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, bytes: Option<u64>) {
        self.count += 1;
        self.bytes += bytes.unwrap_or_default();
    }
}

/// The metric labels of a sum: pairs of a name and a value.
type Labels = Vec<(&'static str, String)>;

#[derive(Default)]
struct Sums {
    releases: BTreeMap<Labels, Sum>,
    pinned: BTreeMap<Labels, Sum>,
    snapshots: BTreeMap<Labels, Sum>,
}

impl Sums {
    fn of(world: &World) -> Self {
        let mut sums = Self::default();
        for release in world.all_releases() {
            let labels = vec![
                ("namespace", release.key.namespace.to_string()),
                // The component label may be missing on a release that another tool created.
                (
                    "component",
                    release.component.as_deref().unwrap_or_default().to_owned(),
                ),
            ];
            sums.releases.entry(labels).or_default().add(release.size);
        }
        for component in world.components() {
            let labels = |environment: &str| {
                vec![
                    ("namespace", component.namespace.to_string()),
                    ("component", component.name.to_string()),
                    ("environment", environment.to_owned()),
                ]
            };
            for (environment, snapshots) in world.snapshots_of(component) {
                let sum = sums.snapshots.entry(labels(environment)).or_default();
                snapshots.iter().for_each(|snapshot| sum.add(snapshot.size));
            }
            for pin in world.pins_of(component) {
                // A ReleasePin counts with its applied release; before the first apply, with its desired
                // release.
                let name = pin.applied.as_deref().unwrap_or(&pin.release);
                let release = world.release(&Key::new(&component.namespace, name));
                if let Some(release) = release {
                    let sum = sums.pinned.entry(labels(&pin.environment)).or_default();
                    sum.add(release.size);
                }
            }
        }
        sums
    }
}

impl Collector for Stored {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        self.objects(&mut encoder)?;
        self.git(&mut encoder)
    }
}

impl Stored {
    fn objects(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let context = {
            let held = self.0.context.read();
            held.unwrap_or_else(PoisonError::into_inner).upgrade()
        };
        // Reports no sums until all lists are complete, because a sum over an incomplete list looks like lost
        // data.
        let sums = context.and_then(|context| {
            let world = context.feed().world();
            let listed =
                world.are_live(&[Source::RELEASES, Source::SNAPSHOTS, Source::RELEASE_PINS]);
            listed.then(|| Sums::of(&world))
        });
        let Some(sums) = sums else {
            return Ok(());
        };
        let what = [
            (
                "releases",
                "The number of releases, by component",
                &sums.releases,
            ),
            (
                "snapshots",
                "The number of snapshots, by component and environment",
                &sums.snapshots,
            ),
        ];
        for (name, help, sums) in what {
            gauges(
                encoder,
                name,
                help,
                None,
                sums.iter().map(|(labels, sum)| (labels, sum.count)),
            )?;
        }
        let what = [
            (
                "release",
                "The size of all releases, by component",
                &sums.releases,
            ),
            (
                "pinned_release",
                "The size of the release of a ReleasePin, by component and environment",
                &sums.pinned,
            ),
            (
                "snapshot",
                "The size of all snapshots, by component and environment",
                &sums.snapshots,
            ),
        ];
        for (name, help, sums) in what {
            let sums = sums.iter().map(|(labels, sum)| (labels, sum.bytes));
            gauges(encoder, name, help, Some(&Unit::Bytes), sums)?;
        }
        Ok(())
    }

    fn git(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let counts = {
            let held = self.0.git.read();
            let git = held.unwrap_or_else(PoisonError::into_inner);
            git.as_ref().map(|git| git.counts())
        };
        let Some(counts) = counts else {
            return Ok(());
        };
        for (name, help, count) in [
            (
                "git_reads",
                "Git references that the controllers read",
                counts.reads,
            ),
            (
                "git_cache_hits",
                "Git references that the cache contained",
                counts.hits,
            ),
            ("git_fetches", "Fetches from repositories", counts.fetches),
            (
                "git_fetch_failures",
                "Fetches that failed",
                counts.failed_fetches,
            ),
        ] {
            let counter = ConstCounter::new(count);
            let metric = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
            counter.encode(metric)?;
        }
        Ok(())
    }
}

fn gauges<'a>(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    values: impl Iterator<Item = (&'a Labels, u64)>,
) -> fmt::Result {
    let gauge = ConstGauge::new(0u64);
    let mut family = encoder.encode_descriptor(name, help, unit, gauge.metric_type())?;
    for (labels, value) in values {
        let gauge = ConstGauge::new(value);
        gauge.encode(family.encode_family(labels)?)?;
    }
    Ok(())
}
