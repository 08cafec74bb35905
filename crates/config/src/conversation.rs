//! Options of conversations.

use conversation_service::{Limits, Options as Conversations};
use model::ByteSize;

use super::units::{count, size};

options! {
    /// Conversations: messages that people and agents append.
    conversation, "Conversations";

    /// Maximum number of messages in one append.
    "conversation.batch_messages_max" => batch_messages_max: u32 =
        count(Limits::default().batch_messages_max), from "1" to "4096";

    /// Maximum bytes in one append: parts and metadata of all messages.
    "conversation.batch_size_max" => batch_size_max: ByteSize =
        size(Limits::default().batch_bytes_max), from "1KiB" to "8MiB";

    /// Maximum bytes of one message: its parts and its metadata.
    "conversation.message_size_max" => message_size_max: ByteSize =
        size(Limits::default().message_bytes_max), from "1KiB" to "8MiB";

    /// Maximum bytes of the metadata of a message or of a conversation.
    "conversation.metadata_size_max" => metadata_size_max: ByteSize =
        size(Limits::default().metadata_bytes_max), from "1KiB" to "1MiB";

    /// Maximum number of parts of one message.
    "conversation.parts_max" => parts_max: u32 = count(Limits::default().parts_max), from "1" to "65535";

    /// Maximum number of participants with a read mark per conversation.
    "conversation.cursors_max" => cursors_max: u32 = count(Limits::default().cursors_max), from "1" to "65536";

    /// Maximum number of answers that are streamed into one conversation at the same time.
    "conversation.drafts_max" => drafts_max: u32 = count(Limits::default().drafts_max), from "1" to "1024";

    /// Maximum bytes of one streamed answer.
    "conversation.draft_size_max" => draft_size_max: ByteSize = size(Limits::default().draft_bytes_max),
        from "1KiB" to "8MiB";

    /// Maximum number of watchers, over all conversations.
    "conversation.watchers_max" => watchers_max: u32 =
        count(Conversations::default().watchers_max), from "1" to "131072";
}
