/** The Markdown version that a page names itself: `<link rel="alternate" type="text/markdown" href="…">`. */
export const MARKDOWN_LINK =
  /<link\b(?=[^>]{0,500}\btype=["']?text\/markdown\b)[^>]{0,500}?\bhref=["']?([^"'\s>]{1,500})/iu
