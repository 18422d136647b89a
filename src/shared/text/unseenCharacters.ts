/** Characters that nobody sees: control, format and bidirectional ones, line separators, and what renders as nothing. */
export const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}]/gu
