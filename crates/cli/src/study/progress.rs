//! The progress of a study. On a terminal, one line says what is measured and how long it will take. Elsewhere, such as in a
//! file, there is a line for each step of the preparations and for each boot that is over.

use std::{
    collections::BTreeMap,
    io::{IsTerminal, Write},
    time::{Duration, Instant},
};

use tollgate_study::laboratory::Boot;

/// Progress on standard error.
#[derive(Debug)]
pub(crate) struct Progress {
    is_terminal: bool,
    total: usize,
    done: usize,
    workers: usize,
    started: Instant,
    under_way: BTreeMap<Boot, String>,
}

impl Progress {
    /// For `total` boots on `workers` guests at a time.
    pub(crate) fn new(total: usize, workers: usize) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { is_terminal, total, done: 0, workers, started: Instant::now(), under_way: BTreeMap::new() }
    }

    /// Shows a step before the first boot.
    pub(crate) fn preparing(&self, step: &str) {
        if !self.is_terminal {
            return eprintln!("tollgate: preparing {step}");
        }
        self.show(&format!("preparing {step}"));
    }

    /// A boot has begun, or has reached a step.
    pub(crate) fn step(&mut self, boot: Boot, step: &str) {
        self.under_way.insert(boot, step.to_string());
        self.draw();
    }

    /// A boot is over, after this many seconds.
    pub(crate) fn finished(&mut self, boot: &Boot, seconds: f64) {
        self.under_way.remove(boot);
        self.done += 1;
        if !self.is_terminal {
            return eprintln!("tollgate: {}", self.over(boot, seconds));
        }
        self.draw();
    }

    /// The line for a boot that is over.
    fn over(&self, boot: &Boot, seconds: f64) -> String {
        let left = self.left().filter(|_| self.done < self.total);
        let left = left.map_or_else(String::new, |left| format!("; about {} left", minutes(left)));
        let Boot { kernel, configuration, index } = boot;
        format!("boot {} of {}: {kernel} {configuration} #{index} in {seconds:.0} s{left}", self.done, self.total)
    }

    /// Prints a line that stays above the moving one.
    pub(crate) fn note(&self, text: &str) {
        self.clear();
        eprintln!("tollgate: {text}");
    }

    /// Removes the moving line.
    pub(crate) fn clear(&self) {
        self.show("");
    }

    fn draw(&self) {
        let boots: Vec<String> = self
            .under_way
            .iter()
            .map(|(boot, step)| format!("{} {} #{} {step}", boot.kernel, boot.configuration, boot.index))
            .collect();
        let left = match self.left() {
            Some(left) => format!(", about {} left", minutes(left)),
            None => String::new(),
        };
        self.show(&format!("[{}/{}{left}] {}", self.done, self.total, boots.join(" | ")));
    }

    /// The time that the remaining boots will take, at the pace of those that are over.
    fn left(&self) -> Option<Duration> {
        let waves_done = u32::try_from(self.done.div_ceil(self.workers)).ok().filter(|waves| *waves > 0)?;
        let waves_left = u32::try_from((self.total - self.done).div_ceil(self.workers)).ok()?;
        Some(self.started.elapsed() / waves_done * waves_left)
    }

    fn show(&self, line: &str) {
        if self.is_terminal {
            // Without automatic wrapping a long line is cut at the edge, and the next one overwrites it whole.
            let _ = write!(std::io::stderr(), "\r\x1b[?7l\x1b[K{line}\x1b[?7h");
        }
    }
}

fn minutes(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_time_in_minutes_and_seconds() {
        assert_eq!(minutes(Duration::from_secs(125)), "2:05");
    }

    #[test]
    fn says_of_each_boot_how_many_are_over_and_how_long_the_others_take() {
        let mut progress = Progress::new(2, 1);
        let boot = Boot { kernel: "6.1".into(), configuration: "none".into(), index: 0 };
        progress.started = Instant::now().checked_sub(Duration::from_secs(60)).unwrap();
        progress.done = 1;
        assert_eq!(progress.over(&boot, 41.6), "boot 1 of 2: 6.1 none #0 in 42 s; about 1:00 left");
        progress.done = 2;
        assert_eq!(progress.over(&boot, 41.6), "boot 2 of 2: 6.1 none #0 in 42 s");
    }

    #[test]
    fn foresees_as_many_waves_as_the_guests_at_a_time_need() {
        let mut progress = Progress::new(10, 2);
        assert_eq!(progress.left(), None);
        progress.started = Instant::now().checked_sub(Duration::from_secs(40)).unwrap();
        progress.done = 4;
        let left = progress.left().unwrap().as_secs_f64();
        assert!((59.0..62.0).contains(&left), "two waves took 40 s, three are left: {left}");
    }
}
