/** Folders as public collections of skills have them, in our own words, and what becomes of each: its tools, or a path and a reason. */
import type { BundleFile } from "#src/choird/repos/skillBundle.ts"

/** Contents by path. */
export type Folder = Readonly<Record<string, string | Uint8Array>>

export const bundleFiles = (folder: Folder): ReadonlyArray<BundleFile> =>
  Object.entries(folder).map(([path, content]) => {
    const bytes = Buffer.from(content)
    return { path, executable: bytes.subarray(0, 2).toString() === "#!", bytes }
  })

/** The text of a SKILL.md. */
export const skill = (
  name: string,
  front: string,
  body = "# Steps\n\n1. Read what is there.\n2. Do the work.\n3. Say what changed."
) => `---\nname: ${name}\ndescription: Helps with ${name}. Use when somebody asks for it.\n${front}---\n\n${body}\n`
export const tools = (names: string) => `allowed-tools: ${names}\n`

const PICTURE = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0])
const SCRIPT = "#!/usr/bin/env python3\nprint('ok')\n"

export type Outcome = ReadonlyArray<string> | { readonly path: string; readonly reason: RegExp }
const READ = "choir.fs.read"
const [WRITE, EDIT, SEARCH, FIND, EXEC] = [
  "choir.fs.write",
  "choir.fs.edit",
  "choir.fs.search",
  "choir.fs.find",
  "choir.exec"
] as const
/** Of a skill that names no tools, as most public ones. */
const ONLY_READS: Outcome = [READ, FIND, SEARCH]
const refused = (reason: RegExp, path = "SKILL.md"): Outcome => ({ path, reason })

/** Fifty folders. */
export const PUBLIC_SKILLS: ReadonlyArray<readonly [name: string, Folder, Outcome]> = [
  [
    "pdf-forms",
    { "SKILL.md": skill("pdf-forms", "license: Proprietary\n"), "scripts/fill.py": SCRIPT, "reference.md": "# Fields" },
    ONLY_READS
  ],
  [
    "spreadsheet",
    { "SKILL.md": skill("spreadsheet", tools("Read Write Bash")), "scripts/recalc.py": SCRIPT },
    [READ, WRITE, EXEC]
  ],
  [
    "slides",
    { "SKILL.md": skill("slides", tools("Read, Write, Edit, Bash")), "ooxml/schemas/a.xsd": "<x/>" },
    [READ, WRITE, EDIT, EXEC]
  ],
  [
    "documents",
    { "SKILL.md": skill("documents", tools("\n  - Read\n  - Edit")), "docs/tracked-changes.md": "# How" },
    [READ, EDIT]
  ],
  [
    "web-testing",
    { "SKILL.md": skill("web-testing", tools("Bash(npx playwright:*)")) },
    refused(/only part of a tool.*choir\.exec/u)
  ],
  [
    "brand-guide",
    { "SKILL.md": skill("brand-guide", tools("Read")), "assets/logo.png": PICTURE, "assets/OFL.txt": "Open" },
    [READ]
  ],
  [
    "generative-art",
    { "SKILL.md": skill("generative-art", tools("Write")), "templates/viewer.html": "<!doctype html>" },
    [WRITE]
  ],
  [
    "internal-news",
    { "SKILL.md": skill("internal-news", tools("[]")), "examples/3p.md": "- progress", "examples/faq.md": "- why" },
    []
  ],
  [
    "mcp-server",
    { "SKILL.md": skill("mcp-server", tools("WebFetch Read")), "reference/python.md": "# Python" },
    ["choir.web.fetch", "choir.fs.read"]
  ],
  [
    "skill-maker",
    {
      "SKILL.md": skill("skill-maker", tools("Read Write Bash")),
      "scripts/init_skill.py": SCRIPT,
      "scripts/package_skill.py": SCRIPT
    },
    [READ, WRITE, EXEC]
  ],
  [
    "chat-gifs",
    {
      "SKILL.md": skill("chat-gifs", tools("Bash")),
      "core/easing.py": "def ease(t): return t\n",
      "requirements.txt": "pillow\n"
    },
    [EXEC]
  ],
  [
    "themes",
    {
      "SKILL.md": skill("themes", tools("Read")),
      ...Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`themes/theme-${at}.md`, `# Theme ${at}`]))
    },
    [READ]
  ],
  [
    "web-artifacts",
    {
      "SKILL.md": skill("web-artifacts", "metadata:\n  version: '2'\n" + tools("Bash Write")),
      "scripts/init.sh": "#!/bin/sh\nexit 0\n"
    },
    [EXEC, WRITE]
  ],
  ["brainstorm", { "SKILL.md": skill("brainstorm", "") }, ONLY_READS],
  [
    "test-first",
    { "SKILL.md": skill("test-first", tools("Read Edit Bash")), "anti-patterns.md": "# Do not" },
    [READ, EDIT, EXEC]
  ],
  [
    "debugging",
    {
      "SKILL.md": skill("debugging", tools("Read Grep Glob Bash")),
      "root-cause.md": "# Ask why",
      "find-polluter.sh": "#!/bin/bash\necho\n"
    },
    [READ, SEARCH, FIND, EXEC]
  ],
  [
    "code-review",
    { "SKILL.md": skill("code-review", tools("Read Grep Glob")), "checklist.md": "- [ ] tests" },
    [READ, SEARCH, FIND]
  ],
  [
    "git-worktrees",
    { "SKILL.md": skill("git-worktrees", tools("Bash(git worktree:*), Bash(git status:*)")) },
    refused(/only part of a tool/u)
  ],
  ["plan-writing", { "SKILL.md": skill("plan-writing", tools("Write")) }, [WRITE]],
  ["subagents", { "SKILL.md": skill("subagents", tools("Task")) }, refused(/no tool Task/u)],
  ["changelog", { "SKILL.md": skill("changelog", tools("Read Bash")) }, [READ, EXEC]],
  ["commit-messages", { "SKILL.md": skill("commit-messages", tools("Bash")) }, [EXEC]],
  [
    "api-docs",
    { "SKILL.md": skill("api-docs", tools("Read Write Glob")), "templates/openapi.yaml": "openapi: 3.1.0\n" },
    [READ, WRITE, FIND]
  ],
  [
    "sql-helper",
    { "SKILL.md": skill("sql-helper", tools("Bash Read")), "references/schema.sql": "create table t (id int);" },
    [EXEC, READ]
  ],
  [
    "data-report",
    { "SKILL.md": skill("data-report", "compatibility: needs python3\n" + tools("Bash")), "scripts/plot.py": SCRIPT },
    [EXEC]
  ],
  [
    "translation",
    {
      "SKILL.md": skill(
        "translation",
        tools("Read Write"),
        "# Übersetzen\n\nLies den Text. Schreibe ihn auf Deutsch — ohne Anglizismen."
      )
    },
    [READ, WRITE]
  ],
  [
    "japanese-notes",
    { "SKILL.md": skill("japanese-notes", tools("Read"), "# 手順\n\n1. メモを読む。\n2. 要点を書く。") },
    [READ]
  ],
  ["arabic-notes", { "SKILL.md": skill("arabic-notes", tools("Read"), "# الخطوات\n\n1. اقرأ الملاحظات.") }, [READ]],
  [
    "emoji-style",
    { "SKILL.md": skill("emoji-style", tools("Write"), "# Style\n\nUse 👩🏽‍💻, ✅ and 🏳️‍🌈 sparingly.") },
    [WRITE]
  ],
  ["accessibility", { "SKILL.md": skill("accessibility", tools("Read Grep")), "wcag/AA.md": "# AA" }, [READ, SEARCH]],
  ["Security-Audit", { "SKILL.md": skill("Security-Audit", tools("Read")) }, refused(/its name has "S": write s/u)],
  ["windows-endings", { "SKILL.md": skill("windows-endings", tools("Read")).replaceAll("\n", "\r\n") }, [READ]],
  ["byte-order-mark", { "SKILL.md": `\u{FEFF}${skill("byte-order-mark", tools("Read"))}` }, [READ]],
  [
    "folded-description",
    {
      "SKILL.md":
        "---\nname: folded-description\ndescription: >-\n  Two lines\n  of one text.\nallowed-tools: Read\n---\n\nDo it.\n"
    },
    [READ]
  ],
  [
    "quoted",
    { "SKILL.md": `---\nname: "quoted"\ndescription: 'Says: "use me"'\nallowed-tools: "Read, LS"\n---\nDo it.\n` },
    [READ, FIND]
  ],
  [
    "no-description",
    { "SKILL.md": "---\nname: no-description\nallowed-tools: Read\n---\nDo it.\n" },
    refused(/\["description"\]/u)
  ],
  ["no-front-matter", { "SKILL.md": "# A skill\n\nDo it.\n" }, refused(/does not begin with front matter/u)],
  [
    "unquoted-colon",
    {
      "SKILL.md": "---\nname: unquoted-colon\ndescription: Use: when asked: often\nallowed-tools: Read\n---\nDo it.\n"
    },
    [READ]
  ],
  [
    "lower-case-file",
    { "skill.md": skill("lower-case-file", tools("Read")) },
    refused(/name it SKILL\.md/u, "skill.md")
  ],
  ["readme-only", { "README.md": "# A skill" }, refused(/it is missing/u)],
  [
    "dotted-rules",
    { "SKILL.md": skill("dotted-rules", tools("Read")), ".cursorrules": "x" },
    refused(/hidden files/u, ".cursorrules")
  ],
  [
    "node-project",
    {
      "SKILL.md": skill("node-project", tools("Bash")),
      "package.json": "{}",
      "src/index.js": "export {}",
      "tests/index.test.js": ""
    },
    [EXEC]
  ],
  [
    "many-references",
    {
      "SKILL.md": skill("many-references", tools("Read")),
      ...Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`references/r${at}.md`, "# R"]))
    },
    [READ]
  ],
  [
    "too-many-files",
    {
      "SKILL.md": skill("too-many-files", tools("Read")),
      ...Object.fromEntries(Array.from({ length: 600 }, (_, at) => [`data/${at}.txt`, "x"]))
    },
    refused(/more than 512 files/u, "(all files)")
  ],
  ["big-asset", { "SKILL.md": skill("big-asset", tools("Read")), "assets/font.ttf": new Uint8Array(600_000) }, [READ]],
  ["long-text", { "SKILL.md": skill("long-text", tools("Read"), "word ".repeat(5000)) }, [READ]],
  [
    "spaces in names",
    { "SKILL.md": skill("spaces-in-names", tools("Read")), "reference docs/How to (v2).md": "# How" },
    [READ]
  ],
  [
    "accented-file",
    { "SKILL.md": skill("accented-file", tools("Read")), "références.md": "# R" },
    refused(/a name may hold/u, "références.md")
  ],
  ["choir-names", { "SKILL.md": skill("choir-names", tools("choir.fs.read choir.fs.find")) }, [READ, FIND]],
  [
    "other-harness",
    {
      "SKILL.md": skill(
        "other-harness",
        "model: opus\ncontext: fork\nhooks:\n  PreToolUse: []\n" + tools("Read TodoWrite")
      )
    },
    refused(/no tool TodoWrite/u)
  ]
]
