//! Events in the kernel's trace.

use std::collections::HashMap;

use super::ring::{wide, word};

/// `common_flags` of a record taken in an interrupt, a softirq or an NMI (`enum trace_flag_type`, include/linux/trace_events.h).
const INTERRUPT: u8 = 0x08 | 0x10 | 0x40;

/// A hook's place in the session's list of them.
pub(super) type Hook = u16;

/// One record of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    /// By the clock `counter`: of two events on any processors, the later has the greater value.
    pub(super) time: u64,
    pub(super) processor: u16,
    /// The thread that ran, or was interrupted.
    pub(super) task: i32,
    /// In an interrupt, or in the deferred half of one.
    pub(super) interrupt: bool,
    pub(super) what: What,
}

/// The kind of event. An object is the address of a kernel structure, a caller that of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A system call begins.
    Enter(u32),
    /// A system call returns to user space; `None` if the number belongs to no call.
    Exit(Option<u32>),
    /// User code touched a page that is not mapped.
    PageFault,
    /// The task itself begins to do work that interrupts have deferred, because it enabled them again (`local_bh_enable`).
    Deferred,
    /// A hook is called.
    Asked { hook: Hook, caller: u64 },
    /// A hook of an object's end is called.
    Freed { hook: Hook, object: u64, caller: u64 },
    /// An object is created.
    Made { object: u64 },
    /// The last reference to an object is dropped, or a call begins its end; the hook follows later.
    Released { object: u64 },
    /// The following events in the same context, with at most this many released objects, are part of this object's end.
    Ends { object: u64, releases: u8 },
    /// A task is gone, and its number may be used again.
    Gone { task: i32 },
}

/// The meaning of a probe on a kernel function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Made,
    Released,
    Ends(u8),
    /// The function is `security_` followed by this; its hook is counted here and not by the function tracer.
    Freed(&'static str),
}

/// A probe: a function, and the register with the object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    pub(super) function: &'static str,
    pub(super) register: &'static str,
    pub(super) role: Role,
}

const fn first(function: &'static str, role: Role) -> Probe {
    Probe { function, register: "%di", role }
}

/// The probes on objects, in all tasks. A kernel that lacks one of the functions has another way; otherwise the object is
/// found to be ours, and its end counts as deferred.
pub(super) const PROBES: &[Probe] = &[
    first("security_prepare_creds", Role::Made),
    first("security_cred_alloc_blank", Role::Made),
    first("security_task_alloc", Role::Made),
    first("security_inode_alloc", Role::Made),
    first("security_file_alloc", Role::Made),
    first("security_sk_alloc", Role::Made),
    Probe { register: "%si", ..first("security_sk_clone", Role::Made) },
    // kernel/cred.c: the last reference; put_cred_rcu calls cred_free after a grace period.
    first("__put_cred", Role::Released),
    // kernel/exit.c: by the waiting task, or at an exit that nobody waits for; delayed_put_task_struct calls task_free.
    first("release_task", Role::Released),
    // net/ipv4/tcp.c: the end of the connection is still to be negotiated.
    first("tcp_close", Role::Released),
    // kernel/cred.c, from __put_task_struct: a task's two credentials.
    first("exit_creds", Role::Ends(2)),
    // fs/file_table.c, until 6.6: a file's credential; its argument is the file's first member.
    first("file_free_rcu", Role::Ends(1)),
    first("security_cred_free", Role::Freed("cred_free")),
    first("security_task_free", Role::Freed("task_free")),
    first("security_inode_free", Role::Freed("inode_free")),
    first("security_file_free", Role::Freed("file_free")),
    first("security_sk_free", Role::Freed("sk_free")),
];

/// The meaning of an event's records, by the event's number in the running kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Function,
    Enter,
    Exit,
    PageFault,
    Gone,
    Probe(Role),
}

impl Kind {
    /// The fields that are read from its records.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Function => &["ip", "parent_ip"],
            Self::Enter | Self::Exit => &["id"],
            Self::PageFault => &[],
            Self::Gone => &["pid"],
            Self::Probe(Role::Freed(_)) => &["object", "caller"],
            Self::Probe(_) => &["object"],
        }
    }
}

/// The layout of an event's records: its `format` in tracefs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// `common_type` of its records.
    pub(super) number: u16,
    /// The offset of each field.
    fields: HashMap<String, usize>,
}

impl Layout {
    /// Reads the `format` file of an event; `None` if it is malformed, or lacks a field.
    pub(super) fn parse(kind: Kind, text: &str) -> Option<Self> {
        let number = text.lines().find_map(|line| line.strip_prefix("ID: "))?.trim().parse().ok()?;
        let fields = text.lines().filter_map(|line| {
            let mut parts = line.trim().strip_prefix("field:")?.split(';');
            let name = parts.next()?.split_whitespace().last()?.to_owned();
            Some((name, parts.next()?.trim().strip_prefix("offset:")?.parse().ok()?))
        });
        let fields: HashMap<_, _> = fields.collect();
        kind.fields().iter().all(|field| fields.contains_key(*field)).then_some(Self { number, fields })
    }

    fn word(&self, record: &[u8], field: &str) -> Option<u32> {
        word(record, *self.fields.get(field)?)
    }

    fn wide(&self, record: &[u8], field: &str) -> Option<u64> {
        wide(record, *self.fields.get(field)?)
    }
}

/// Turns records into events.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    layouts: HashMap<u16, (Kind, Layout)>,
    /// Traced functions, by any address in their first bytes.
    functions: HashMap<u64, Function>,
    /// The hooks that probes count, by the function's name without `security_`.
    freed: HashMap<&'static str, Hook>,
}

/// A function that is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Hook(Hook),
    /// The function `do_softirq`.
    Deferred,
    /// A function that a probe counts, or that is no hook.
    Other,
}

impl Decoder {
    pub(super) fn add(&mut self, kind: Kind, layout: Layout) {
        self.layouts.insert(layout.number, (kind, layout));
    }

    /// `function` is the name without `security_`.
    pub(super) fn counts(&mut self, function: &'static str, hook: Hook) {
        self.freed.insert(function, hook);
    }

    /// The event of a record; `find` names a function by an address in it. `None` if the record has no meaning here.
    pub(super) fn decode(
        &mut self,
        time: u64,
        processor: u16,
        record: &[u8],
        find: impl FnOnce(u64) -> Function,
    ) -> Option<Event> {
        let (flags, task) = (*record.get(2)?, word(record, 4)?.cast_signed());
        let number = u16::from_ne_bytes(record.get(..2)?.try_into().ok()?);
        let (kind, layout) = self.layouts.get(&number)?;
        let what = match kind {
            Kind::Enter => What::Enter(u32::try_from(layout.wide(record, "id")?).unwrap_or(u32::MAX)),
            Kind::Exit => What::Exit(u32::try_from(layout.wide(record, "id")?).ok()),
            Kind::PageFault => What::PageFault,
            Kind::Gone => What::Gone { task: layout.word(record, "pid")?.cast_signed() },
            Kind::Function => {
                let (address, caller) = (layout.wide(record, "ip")?, layout.wide(record, "parent_ip")?);
                match *self.functions.entry(address).or_insert_with(|| find(address)) {
                    Function::Hook(hook) => What::Asked { hook, caller },
                    Function::Deferred => What::Deferred,
                    Function::Other => return None,
                }
            }
            Kind::Probe(role) => {
                let object = layout.wide(record, "object")?;
                match role {
                    Role::Made => What::Made { object },
                    Role::Released => What::Released { object },
                    Role::Ends(releases) => What::Ends { object, releases: *releases },
                    Role::Freed(function) => {
                        What::Freed { hook: *self.freed.get(function)?, object, caller: layout.wide(record, "caller")? }
                    }
                }
            }
        };
        Some(Event { time, processor, task, interrupt: flags & INTERRUPT != 0, what })
    }
}

/// Merges the events of several buffers, each ordered by itself.
#[derive(Debug, Default)]
pub(super) struct Merger {
    waiting: Vec<Event>,
    /// The latest time in an earlier reading of all buffers: everything before it has arrived.
    seen: u64,
}

impl Merger {
    pub(super) fn add(&mut self, event: Event) {
        self.waiting.push(event);
    }

    /// The events before which no other can come any more; call it after all buffers were read.
    pub(super) fn ready(&mut self) -> Vec<Event> {
        self.waiting.sort_by_key(|event| event.time);
        let until = self.waiting.partition_point(|event| event.time <= self.seen);
        self.seen = self.waiting.last().map_or(self.seen, |event| event.time);
        self.waiting.drain(..until).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTION: &str = "name: function\nID: 1\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:unsigned long parent_ip;\toffset:16;\tsize:8;\n\
        \nprint fmt: \" %ps <-- %ps\"\n";

    fn record(number: u16, flags: u8, task: i32, words: &[u64]) -> Vec<u8> {
        let mut bytes = number.to_ne_bytes().to_vec();
        bytes.extend([flags, 0]);
        bytes.extend(task.to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    #[test]
    fn reads_where_the_fields_of_an_event_are() {
        let layout = Layout::parse(Kind::Function, FUNCTION).unwrap();
        assert_eq!((layout.number, layout.fields["ip"], layout.fields["parent_ip"]), (1, 8, 16));
        assert_eq!(Layout::parse(Kind::Function, "no format"), None);
    }

    #[test]
    fn refuses_a_format_without_a_field_that_is_read() {
        for (kind, field) in [(Kind::Enter, "id"), (Kind::Gone, "pid"), (Kind::Probe(Role::Made), "object")] {
            assert_eq!(Layout::parse(kind, FUNCTION), None, "{field}");
            let with = FUNCTION.replace("parent_ip", field);
            assert!(Layout::parse(kind, &with).is_some(), "{field}");
            assert_eq!(Layout::parse(Kind::Function, &with), None, "parent_ip");
        }
    }

    #[test]
    fn tells_whose_number_is_free_again() {
        let mut decoder = Decoder::default();
        let format = "ID: 3\n\tfield:char comm[16];\toffset:8;\tsize:16;\n\tfield:pid_t pid;\toffset:24;\tsize:4;\n";
        decoder.add(Kind::Gone, Layout::parse(Kind::Gone, format).unwrap());
        let event = decoder.decode(9, 0, &record(3, 0x10, 0, &[1, 2, 77]), |_| Function::Other).unwrap();
        assert_eq!(event.what, What::Gone { task: 77 });
    }

    #[test]
    fn tells_a_hook_with_its_caller_and_whether_an_interrupt_asked() {
        let mut decoder = Decoder::default();
        decoder.add(Kind::Function, Layout::parse(Kind::Function, FUNCTION).unwrap());
        let mut decode = |record: &[u8]| decoder.decode(9, 2, record, |_| Function::Hook(4));
        let event = decode(&record(1, 0x10, 77, &[0x100, 0x200])).unwrap();
        assert_eq!((event.time, event.processor, event.task, event.interrupt), (9, 2, 77, true));
        assert_eq!(event.what, What::Asked { hook: 4, caller: 0x200 });
        assert!(!decode(&record(1, 0x01, 77, &[0x100, 0x200])).unwrap().interrupt);
        assert_eq!(decode(&record(2, 0, 77, &[0x100, 0x200])), None);
        assert_eq!(decode(&record(1, 0, 77, &[0x100])), None);
    }

    #[test]
    fn brings_events_of_several_processors_into_one_order() {
        let event = |time| Event { time, processor: 0, task: 1, interrupt: false, what: What::PageFault };
        let mut merger = Merger::default();
        let mut times = |added: &[u64]| {
            added.iter().for_each(|time| merger.add(event(*time)));
            merger.ready().iter().map(|event| event.time).collect::<Vec<_>>()
        };
        assert!(times(&[3, 5, 1]).is_empty());
        // Four was written while the buffers were read, one after another.
        assert_eq!(times(&[4, 8]), [1, 3, 4, 5]);
        assert_eq!(times(&[]), [8]);
    }
}
