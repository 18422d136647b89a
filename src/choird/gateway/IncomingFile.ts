/** A file as the message that brings it describes it. Only the bytes say what it is. */
export interface IncomingFile {
  /** The channel's own name for its bytes. */
  readonly file_id: string
  readonly kind: "document" | "photo" | "video" | "voice" | "audio"
  readonly name: string
  readonly bytes: number | undefined
  /** The length of a recording, as its message has it. */
  readonly seconds?: number
  /** It is a round video, which people record in place of a voice message. */
  readonly spoken?: true
}
