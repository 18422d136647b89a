/** Whether somebody accepts connections on choird's socket, found out without asking anything. */
import { socketAnswers } from "#src/shared/socketAnswers.ts"
import { operatorSocket } from "./root.ts"

export const choirdAnswers = (home: string) => socketAnswers(operatorSocket(home))
