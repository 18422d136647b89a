/** The tool work that both loops do. */

const FILES = 64

/** The file that a step reads. Neighbouring steps differ, or the runtime would take them for a loop of the model's. */
export const pathOf = (step: number): string => `data/${step % FILES}.txt`

/** 1 KiB, other text for each step. */
export const fileText = (step: number): string => `${step}\n${"0123456789abcde\n".repeat(64)}`.slice(0, 1023) + "\n"

export const paths: ReadonlyArray<string> = Array.from({ length: FILES }, (_, step) => pathOf(step))
