/** The client of the Docker engine: in the build and the library a file of its own, without what Choir does not use of it. */
export { default } from "dockerode"
