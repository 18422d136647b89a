/** The messages between choird and the thread that reads one page. */

export interface PageOrder {
  readonly html: string
  /** The page's own address, which its links are relative to. */
  readonly url: string
}

/** A page as Markdown. */
export interface PageText {
  readonly title: string
  readonly text: string
}

export type PageReport =
  /** The thread has loaded its program: the time of the page begins. */
  | { readonly _tag: "Ready" }
  | { readonly _tag: "Read"; readonly page: PageText }
  | { readonly _tag: "Refused"; readonly problem: string }
