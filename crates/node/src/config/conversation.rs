//! What is said in conversations.

use model::ByteSize;

options! {
    /// Conversations: messages that people and agents append, and what is derived from them.
    conversation, "Conversations";

    /// Messages that are appended at once.
    "conversation.batch_messages_max" => batch_messages_max: u32 = 256, from "1" to "4096";

    /// Bytes that are appended at once: parts and metadata of all messages.
    "conversation.batch_size_max" => batch_size_max: ByteSize = ByteSize::mebibytes(8),
        from "1KiB" to "8MiB";

    /// Bytes of one message: its parts and its metadata.
    "conversation.message_size_max" => message_size_max: ByteSize = ByteSize::mebibytes(1),
        from "1KiB" to "8MiB";

    /// Bytes of the metadata of a message, or of a conversation.
    "conversation.metadata_size_max" => metadata_size_max: ByteSize = ByteSize::kibibytes(16),
        from "1KiB" to "1MiB";

    /// Parts of one message.
    "conversation.parts_max" => parts_max: u32 = 1_024, from "1" to "65535";

    /// Participants of one conversation who have a read mark.
    "conversation.cursors_max" => cursors_max: u32 = 1_024, from "1" to "65536";

    /// Answers that are being streamed into one conversation.
    "conversation.drafts_max" => drafts_max: u32 = 8, from "1" to "1024";

    /// Bytes of one answer that is being streamed.
    "conversation.draft_size_max" => draft_size_max: ByteSize = ByteSize::mebibytes(4),
        from "1KiB" to "8MiB";

    /// Those who watch a conversation, over all of them.
    "conversation.watchers_max" => watchers_max: u32 = 10_000, from "1" to "131072";
}
