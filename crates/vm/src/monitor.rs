//! QEMU's monitor (docs/interop/qmp-spec.txt): commands and answers, a line of JSON each, with events between them.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{Error, Wire, error::Context};

/// How long an answer may take. The emulator answers at once, but a busy machine may delay it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

pub(crate) struct Monitor {
    stream: BufReader<UnixStream>,
}

impl Monitor {
    /// Makes the monitor ready for commands.
    pub(crate) fn new(stream: UnixStream) -> Result<Self, Error> {
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).context("wait for QEMU's monitor")?;
        let mut monitor = Self { stream: BufReader::new(stream) };
        monitor.wait_for(|line| line.get("QMP").is_some())?;
        monitor.execute("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// The monitor of a machine that is saved, or was. The guest's memory is shared with a file, so it is not part of the
    /// saved state.
    pub(crate) fn of_saved(stream: UnixStream) -> Result<Self, Error> {
        let mut monitor = Self::new(stream)?;
        let ignored = json!({ "capability": "x-ignore-shared", "state": true });
        monitor.execute("migrate-set-capabilities", json!({ "capabilities": [ignored] }))?;
        Ok(monitor)
    }

    /// Writes the machine's state to a file, through a socket. The machine is stopped afterwards.
    pub(crate) fn save(&mut self, socket: &Path, file: &Path) -> Result<(), Error> {
        let what = || format!("write {}", file.display());
        let listener = UnixListener::bind(socket).context(format!("listen on {}", socket.display()))?;
        self.execute("migrate", json!({ "uri": uri(socket) }))?;
        let (mut state, _) = listener.accept().context("accept the machine's state")?;
        io::copy(&mut state, &mut File::create(file).context(what())?).context(what())?;
        loop {
            let answer = self.execute("query-migrate", json!({}))?;
            match answer["status"].as_str().unwrap_or_default() {
                "completed" => return Ok(()),
                "failed" | "cancelled" => return Err(Error::Monitor { answer: answer.to_string() }),
                _ => thread::sleep(POLL_INTERVAL),
            }
        }
    }

    /// Continues the machine from the state in a file.
    pub(crate) fn go_on(&mut self, file: &Path, socket: &Path) -> Result<(), Error> {
        let what = || format!("read {}", file.display());
        self.execute("migrate-incoming", json!({ "uri": uri(socket) }))?;
        let mut to = UnixStream::connect(socket).context(format!("connect to {}", socket.display()))?;
        let sent = io::copy(&mut File::open(file).context(what())?, &mut to);
        drop(to);
        match sent {
            // The emulator reports itself why it has not read everything.
            Err(e) if !is_closed(&e) => return Err(e).context(what()),
            _ => {}
        }
        self.wait_for(|line| line["event"] == "RESUME").map(drop)
    }

    /// Adds a network card, at its end of a wire, to a machine that runs.
    pub(crate) fn plug(&mut self, wire: &Wire) -> Result<(), Error> {
        wire.commands().into_iter().try_for_each(|(command, arguments)| self.execute(command, arguments).map(drop))
    }

    /// Does commands of the monitor for people, which answer only if something is wrong.
    pub(crate) fn command(&mut self, lines: &[&str]) -> Result<(), Error> {
        for line in lines {
            let answer = self.execute("human-monitor-command", json!({ "command-line": line }))?;
            match answer.as_str().unwrap_or_default().trim() {
                "" => {}
                said => return Err(Error::Monitor { answer: format!("{line}: {said}") }),
            }
        }
        Ok(())
    }

    fn execute(&mut self, command: &str, arguments: Value) -> Result<Value, Error> {
        let line = format!("{}\n", json!({ "execute": command, "arguments": arguments }));
        self.stream.get_mut().write_all(line.as_bytes()).context("write to QEMU's monitor")?;
        let answer = self.wait_for(|line| line.get("return").is_some() || line.get("error").is_some())?;
        match answer.get("return") {
            Some(value) => Ok(value.clone()),
            None => Err(Error::Monitor { answer: format!("{command}: {}", answer["error"]["desc"]) }),
        }
    }

    fn wait_for(&mut self, wanted: impl Fn(&Value) -> bool) -> Result<Value, Error> {
        loop {
            let mut line = String::new();
            let read = self.stream.read_line(&mut line).or_else(|e| if is_closed(&e) { Ok(0) } else { Err(e) });
            if read.context("read from QEMU's monitor")? == 0 {
                let status = "it closed its monitor".into();
                return Err(Error::QemuDied { status, detail: String::new(), console: String::new() });
            }
            let value = serde_json::from_str(&line).map_err(|e| Error::Monitor { answer: format!("{line:?}: {e}") })?;
            if wanted(&value) {
                return Ok(value);
            }
        }
    }
}

/// Whether the other end was closed. If it has not read everything by then, Linux reports ECONNRESET.
fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

fn uri(socket: &Path) -> String {
    format!("unix:{}", socket.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A monitor that sends these lines, whatever command it gets.
    fn says(lines: &str) -> Result<Monitor, Error> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(lines.as_bytes()).unwrap();
        // What is written stays to be read; nobody reads the commands to the monitor.
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        let heard = thread::spawn(move || io::copy(&mut theirs, &mut io::sink()));
        let monitor = Monitor::of_saved(ours);
        drop(heard);
        monitor
    }

    const GREETING: &str = "{\"QMP\": {}}\n{\"return\": {}}\n{\"event\": \"STOP\"}\n{\"return\": {}}\n";

    #[test]
    fn passes_over_events_to_the_answer() {
        let mut monitor =
            says(&format!("{GREETING}{{\"event\": \"MIGRATION\"}}\n{{\"return\": {{\"status\": \"x\"}}}}\n"));
        let answer = monitor.as_mut().unwrap().execute("query-migrate", json!({})).unwrap();
        assert_eq!(answer["status"], "x");
    }

    #[test]
    fn reports_what_the_emulator_says_of_a_command() {
        let mut monitor =
            says(&format!("{GREETING}{{\"return\": \"\"}}\n{{\"return\": \"unknown command\\r\\n\"}}\n")).unwrap();
        let error = monitor.command(&["log none", "singlestep off"]).unwrap_err().to_string();
        assert!(error.ends_with("singlestep off: unknown command"), "{error}");
    }

    #[test]
    fn reports_what_the_emulator_refuses_and_its_end() {
        let refused = "{\"QMP\": {}}\n{\"return\": {}}\n{\"error\": {\"desc\": \"no such capability\"}}\n";
        let error = says(refused).err().unwrap().to_string();
        assert!(error.contains("migrate-set-capabilities") && error.contains("no such capability"), "{error}");
        assert!(matches!(says("{\"QMP\": {}}\n").err(), Some(Error::QemuDied { .. })));
        assert!(matches!(says("hello\n").err(), Some(Error::Monitor { .. })));
    }

    #[test]
    fn reports_the_end_of_an_emulator_that_did_not_read_its_commands() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(GREETING.as_bytes()).unwrap();
        let mut monitor = Monitor::of_saved(ours).unwrap();
        drop(theirs);
        assert!(matches!(monitor.wait_for(|_| true), Err(Error::QemuDied { .. })));
    }
}
