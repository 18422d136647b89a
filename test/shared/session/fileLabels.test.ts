import { assert, describe, it } from "@effect/vitest"
import type { Source } from "#schema/Source.ts"
import {
  type FileLabels,
  LABELLED_FILES_MAX,
  LABELLED_PATH_CHARS_MAX,
  labelsAt,
  NO_FILES,
  sourcesOfAll,
  withFileLabels
} from "#src/shared/session/fileLabels.ts"

const PAGE: ReadonlyArray<Source> = ["web:a.example"]
const MAIL: ReadonlyArray<Source> = ["mail:a@b.example"]

const labelled = (paths: ReadonlyArray<string>, sources = PAGE, before: FileLabels = NO_FILES): FileLabels => {
  const labels = withFileLabels(before, paths, sources)
  if (labels === undefined) throw new Error("all files are labelled")
  return labels
}

describe("labels of files", () => {
  it("belong to a path and all below it, in any spelling that a file system may take for the same", () => {
    const labels = labelled(["a/b", "caf\u00e9.md"])
    for (const path of ["a/b", "a/b/c/d", "A/B", "cafe\u0301.md", "CAF\u00c9.MD"])
      assert.deepStrictEqual(labelsAt(labels, [path]), [PAGE], path)
    for (const path of ["a", "a/bc", "b", "cafe.md", "x/a/b"])
      assert.deepStrictEqual(labelsAt(labels, [path]), [], path)
  })

  it("belong to spellings that are the same only in capitals, or but for signs that nobody sees", () => {
    for (const [path, other] of [
      ["\u03b1\u03c2.md", "\u03b1\u03c3.md"],
      ["stra\u00dfe.md", "STRASSE.md"],
      ["\u017fecret.md", "Secret.md"],
      ["a/note.md", "a/no\u200dte.md"],
      ["a\ufe0f/note.md", "a/NOTE.md"]
    ] as const) {
      assert.deepStrictEqual(labelsAt(labelled([path]), [other]), [PAGE], `${path} ${other}`)
      assert.deepStrictEqual(labelsAt(labelled([other]), [path]), [PAGE], `${other} ${path}`)
    }
    assert.deepStrictEqual(labelsAt(labelled(["a"]), [".g\u200cit/HEAD"]), [PAGE])
    assert.deepStrictEqual([...labelled(["b/.g\u200cit/HEAD"]).keys()], ["b/.g\u200cit"])
  })

  it("are all of them where nobody knows what was read, or it was a copy that git made", () => {
    const labels = labelled(["b"], MAIL, labelled(["a"]))
    for (const paths of [undefined, [".git/HEAD"], ["c", "x/.git/config"], [".worktrees/job/c"], [".GIT/HEAD"]])
      assert.deepStrictEqual(labelsAt(labels, paths), [PAGE, MAIL], String(paths))
    for (const path of [".git", ".git/", ".worktrees", ".gitignore", ".choirtmp/send/a"])
      assert.deepStrictEqual(labelsAt(labels, [path]), [], path)
    assert.deepStrictEqual(labelsAt(NO_FILES, undefined), [])
  })

  it("gather sources, and are the same where nothing is new", () => {
    const labels = labelled(["a"], MAIL, labelled(["a"]))
    assert.deepStrictEqual(sourcesOfAll(labels), [...PAGE, ...MAIL])
    assert.strictEqual(withFileLabels(labels, ["a"], MAIL), labels)
    assert.strictEqual(withFileLabels(labels, [], MAIL), labels)
  })

  it("cover all of git's own folder where one of its files is written, since git makes others of them", () => {
    assert.deepStrictEqual([...labelled([".git/HEAD", "a/.git/hooks/x", ".GIT/x"]).keys()], [".git", "a/.git", ".GIT"])
    assert.isUndefined(withFileLabels(NO_FILES, [""], PAGE))
  })

  it("become those of the fullest folder beyond their limit, and of everything where there is none", () => {
    const many = Array.from({ length: LABELLED_FILES_MAX }, (_, n) => `full/${n}`)
    const labels = labelled(["other/a", ...many])
    assert.deepStrictEqual([...labels.keys()], ["other/a", "full"])
    assert.deepStrictEqual(labelsAt(labels, ["full/new"]), [PAGE])
    const atTop = Array.from({ length: LABELLED_FILES_MAX + 1 }, (_, n) => `${n}`)
    assert.isUndefined(withFileLabels(NO_FILES, atTop, PAGE))
  })

  it("have a limit in characters too", () => {
    const sources = Array.from({ length: 20 }, (_, n): Source => `web:${"x".repeat(150)}${n}`)
    const paths = Array.from({ length: 30 }, (_, n) => `full/${n}`)
    assert.deepStrictEqual([...labelled(paths, sources).keys()], ["full"])
  })

  it("of a long path are those of its folder", () => {
    assert.deepStrictEqual([...labelled([`a/${"b".repeat(LABELLED_PATH_CHARS_MAX)}`]).keys()], ["a"])
    assert.isUndefined(withFileLabels(NO_FILES, ["b".repeat(LABELLED_PATH_CHARS_MAX + 1)], PAGE))
  })
})
