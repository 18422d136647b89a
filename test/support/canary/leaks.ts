/** Programs that try to get secrets out: each prints what it was given in every form that a search looks for. */

/** Python that prints one text in every form, each on a line. */
const PRINT_FORMS = `import base64, json, sys, urllib.parse
def forms(text):
    raw = text.encode()
    quoted = json.dumps(text, ensure_ascii=False)
    return [text, *(base64.b64encode(b"x" * n + raw).decode() for n in range(3)), base64.urlsafe_b64encode(raw).decode(),
            raw.hex(), raw.hex().upper(), urllib.parse.quote(text, safe=""), urllib.parse.quote_plus(text),
            quoted, json.dumps(quoted, ensure_ascii=False), json.dumps(text)]
`

/** Reads a text from standard input. With a number it first fills so many characters, so that the output is longer than an event holds. */
export const FORMS_PROGRAM = `${PRINT_FORMS}
if len(sys.argv) > 1: print(("filling " * 8 + "\\n") * (int(sys.argv[1]) // 65))
print("\\n".join(forms(sys.stdin.read())))
`

/** A tool that tells its secrets in the way that its input names. */
export const leakTool = (secret_resources: ReadonlyArray<string>) =>
  [
    "secrets.tell",
    {
      llm: { name: "secrets.tell", description: "Tell secrets", input_schema: { type: "object" } },
      runtime: { exec_path: "secrets.tell", effect: "none", secret_resources: [...secret_resources] }
    },
    `#!/usr/bin/env python3
${PRINT_FORMS}
import os
how = json.load(sys.stdin).get("how")
told = [form for value in json.load(os.fdopen(int(os.environ["CHOIR_SECRETS_FD"]))).values()
        for part in [value, value.split(":", 1)[-1], *value.split("\\n")] if len(part) > 8 for form in forms(part)]
if how == "error":
    sys.exit("\\n".join(told))
if how == "text":
    print("\\n".join(told)); sys.exit()
output = {"told": told, "by name": {form: 1 for form in told}}
if how == "long": output["filling"] = "filling " * 50000
print(json.dumps({"status": "success", "summary": " ".join(told[:3]), "output": output}))
`
  ] as const
