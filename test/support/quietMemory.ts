/** The services of agents' memory for suites that ask nothing of them. */
import { Layer } from "effect"
import { Forgetting } from "#src/choird/memory/Forgetting.ts"
import { Knowledge } from "#src/choird/memory/Knowledge.ts"
import { MemoryContents } from "#src/choird/memory/MemoryContents.ts"
import { Recall } from "#src/choird/memory/Recall.ts"

export const quietMemory = Layer.mergeAll(
  Layer.mock(Forgetting, {}),
  Layer.mock(Knowledge, {}),
  Layer.mock(MemoryContents, {}),
  Layer.mock(Recall, {})
)
