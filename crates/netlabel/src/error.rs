//! Why bytes are no label, and why a label does not fit into an option.

/// Why bytes are no option, or not one that this crate takes.
///
/// The variants stand in the order of `enum tg_label_error` in bpf/netlabel.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There are fewer bytes than the header or the lengths in it say.
    #[error("{needed} bytes are needed, and {have} are there")]
    Truncated {
        /// Bytes that are needed.
        needed: usize,
        /// Bytes that are there.
        have: usize,
    },
    /// More options than an IP header can have.
    #[error("{have} bytes of options, where {most} are the most")]
    TooLong {
        /// Bytes that are there.
        have: usize,
        /// The most that the format allows.
        most: usize,
    },
    /// An option of another kind.
    #[error("an option of type {found}, not {expected}")]
    OptionType {
        /// The type that was read.
        found: u8,
        /// The type of the options that this reader reads.
        expected: u8,
    },
    /// The length of an option cannot be right.
    #[error("an option of type {kind} is not {length} bytes long")]
    OptionLength {
        /// The option's type.
        kind: u8,
        /// Its length in bytes, as the option has it.
        length: u8,
    },
    /// The packet has more than one label.
    #[error("a second label, in an option of type {kind}")]
    SecondLabel {
        /// The type of the option that has the second label.
        kind: u8,
    },
    /// There are bytes after the end of the options, or padding is not zero.
    #[error("padding has the value {value} where it must be 0")]
    Padding {
        /// The value of the first such byte.
        value: u8,
    },
    /// More padding in a row than alignment needs (RFC 4942, section 2.1.9.5).
    #[error("{bytes} bytes of padding in a row, where 7 are the most")]
    TooMuchPadding {
        /// Bytes of padding so far.
        bytes: usize,
    },
    /// DOI 0 means no domain.
    #[error("domain of interpretation 0 is reserved")]
    ReservedDoi,
    /// DSM's option with another domain than DSM's.
    #[error("domain of interpretation {found:#x} is not DSM's")]
    WrongDoi {
        /// The domain that was read.
        found: u32,
    },
    /// A tag of a type that is not read.
    #[error("a tag of unknown type {tag}")]
    TagType {
        /// The tag's type.
        tag: u8,
    },
    /// The length of a tag cannot be right.
    #[error("a tag of type {tag} is not {length} bytes long")]
    TagLength {
        /// The tag's type.
        tag: u8,
        /// Its length in bytes, as the tag has it.
        length: u8,
    },
    /// An option with more than one tag.
    #[error("a second tag, of type {tag}")]
    SecondTag {
        /// The type of the second tag.
        tag: u8,
    },
    /// The alignment octet of a tag is not zero.
    #[error("the alignment octet is {value} where it must be 0")]
    Alignment {
        /// Its value.
        value: u8,
    },
    /// Category 65535, which is not valid.
    #[error("category {category} is not valid, 65534 is the highest")]
    Category {
        /// The category.
        category: u16,
    },
    /// Categories are not in the order that the tag needs, or not unique.
    #[error("category {next} must not come after {previous}")]
    Order {
        /// The category before.
        previous: u16,
        /// The category that breaks the order.
        next: u16,
    },
    /// A range whose upper end is below its lower end.
    #[error("a range from category {low} to {high} is reversed")]
    Reversed {
        /// The lower end.
        low: u16,
        /// The upper end.
        high: u16,
    },
    /// A parameter of a free-form tag that is not the one that must be there.
    #[error("parameter {found} of {length} bytes where parameter {expected} of 6 must be")]
    Parameter {
        /// The parameter's type.
        found: u8,
        /// Its length in bytes.
        length: u8,
        /// The type that must be there.
        expected: u8,
    },
    /// The size of the bitmap contradicts the size of the option.
    #[error("{words} words of compartments do not fit {length} bytes of an option")]
    Compartments {
        /// Size of the bitmap, in words of 32 bits.
        words: u8,
        /// Length of the option's data, in bytes.
        length: u8,
    },
    /// The checksum is wrong.
    #[error("the checksum is {found:#06x}, computed {computed:#06x}")]
    Checksum {
        /// The checksum in the option.
        found: u16,
        /// The checksum of the option.
        computed: u16,
    },
    /// A label of a version of Tollgate that this one does not know.
    #[error("a label of version {found}")]
    Version {
        /// The version.
        found: u8,
    },
}

/// Why a label cannot be put into an option of this format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A category is too high for the format.
    #[error("category {category} is above {highest}, the highest of this format: choose another tag")]
    Category {
        /// The category.
        category: u16,
        /// The highest category of the format.
        highest: u16,
    },
    /// More categories, or ranges of them, than the tag can list.
    #[error("the list of categories takes {bytes} bytes, and 30 are free: choose another tag")]
    Room {
        /// Bytes that the list takes.
        bytes: usize,
    },
}
