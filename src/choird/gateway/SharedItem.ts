/** Things that a message may share beside words and files: a place, a person, a question. Their texts are any texts that somebody chose. */

interface Place {
  readonly latitude: number
  readonly longitude: number
  /** How far it may be off. */
  readonly accuracy_m?: number
}

export type SharedItem =
  /** `live_s` is how long the person shares where they are; only the first place is read. */
  | ({ readonly type: "location"; readonly live_s?: number } & Place)
  | ({ readonly type: "venue"; readonly title: string; readonly address: string } & Place)
  | { readonly type: "contact"; readonly name: string; readonly phone: string; readonly emails: ReadonlyArray<string> }
  | {
      readonly type: "poll"
      readonly question: string
      readonly options: ReadonlyArray<{ readonly text: string; readonly votes: number }>
      readonly is_quiz: boolean
      readonly is_closed: boolean
    }
  | {
      readonly type: "checklist"
      readonly title: string
      readonly tasks: ReadonlyArray<{ readonly text: string; readonly done: boolean }>
    }
  | { readonly type: "dice"; readonly emoji: string; readonly value: number }
  | { readonly type: "sticker"; readonly emoji: string }
