/**
 * The file beside the socket of an agent that says that its workspace has files from people. choird makes it before it puts the first one there, and
 * nothing in a sandbox can take it away, so that no command reads such a file before the agent knows of it.
 */
export const RECEIVED_MARK = "received"
