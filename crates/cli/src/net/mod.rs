//! `tollgate net`: labels in packets.

mod check;
mod doi;
mod key;
mod map;
mod peer;
mod peers;
mod status;
mod trace;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say whether packets have labels, and what became of packets; exit status 1 if no network is labelled
    Status(status::Arguments),
    /// List networks with the labels of their packets, or print the zone of an address; exit status 1 if it is in none
    Map(map::Arguments),
    /// List domains of interpretation, which say how packets write levels, and the keys that seal labels
    Doi(doi::Arguments),
    /// Print packets that are denied or dropped as it happens, with the cause
    Trace(trace::Arguments),
    /// Print the context of a socket's peer; exit status 1 if it is not known
    Peer(peer::Arguments),
    /// List the flows of sockets that have labels, with the contexts at both ends
    Peers(peers::Arguments),
    /// Say what is wrong with a file of labelled networks, without putting it in force; exit status 1 if something is
    Check(check::Arguments),
    /// Make and exchange the keys that seal labels
    #[command(subcommand)]
    Key(key::Command),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Status(arguments) => status::run(arguments),
        Command::Map(arguments) => map::run(arguments),
        Command::Doi(arguments) => doi::run(arguments),
        Command::Trace(arguments) => trace::run(arguments),
        Command::Peer(arguments) => peer::run(arguments),
        Command::Peers(arguments) => peers::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Key(command) => key::run(command),
    }
}

/// Rows of text in columns. The first row is the head.
fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let line = |row: &[String; COLUMNS]| {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_columns_as_wide_as_their_widest_cell() {
        let rows = [["A", "B", "C"], ["long", "é", ""]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "A     B  C\nlong  é\n");
    }
}
