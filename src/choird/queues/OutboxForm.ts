/** The form of a message beside its text, for channels that can show it: buttons, an edit of an earlier message, or files. */
import type { SentFile } from "#schema/SentFile.ts"

export interface Button {
  readonly text: string
  /** Comes back with a tap; at most BUTTON_DATA_BYTES_MAX. */
  readonly data: string
  readonly style?: "success" | "danger"
}

/** Bytes that Telegram takes for a button's data. */
export const BUTTON_DATA_BYTES_MAX = 64

export interface OutboxForm {
  /** Rows of buttons below the message. */
  readonly buttons?: ReadonlyArray<ReadonlyArray<Button>>
  /** The source_id of an earlier message of choird's own, whose text this one replaces; its buttons go. */
  readonly edits?: string
  /** The whole text of an approval as a file, with the message's text as its caption. */
  readonly document?: { readonly approval_id: string; readonly name: string }
  /** Files of the workspace with this name in config.json; the message's text is the caption of the first. */
  readonly files?: { readonly workspace: string; readonly items: ReadonlyArray<SentFile> }
}

/** Whether a message is nothing without its form, so that a channel that shows texts alone leaves it out. */
export const needsForm = (form: OutboxForm | null | undefined): boolean =>
  form?.edits !== undefined || form?.document !== undefined
