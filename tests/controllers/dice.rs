//! A generator of pseudo-random numbers. The same seed gives the same numbers in every run.

/// The state of the generator, at first its seed.
pub struct Dice(pub u64);

impl Dice {
    /// Returns the next number, from 0 to `sides` - 1.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}
