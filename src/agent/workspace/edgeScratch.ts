/** The folder in which edge writes while jobs run: no job works there, and no search looks into it. */
import { pathInside } from "#src/shared/image/workspacePath.ts"

export const EDGE_SCRATCH = ".choirtmp/edge"

/** Whether a path, however it is spelled, is in edge's folder. */
export const isEdgeScratch = (path: string): boolean => pathInside(path)?.startsWith(`${EDGE_SCRATCH}/`) === true
