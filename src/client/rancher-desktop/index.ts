// The door to what concerns Rancher Desktop itself, which the tool also drives: an application with settings of its own version and `/v1` alone.
// It imports the client of our service, and nothing but this file is imported from outside.
export { createForeignClient } from './client.ts';
export { layersOfApplication } from './layers.ts';
export { noteOtherApplication } from './notice.ts';
export { machineShell } from './shell.ts';
export { waitUntilReady } from './wait.ts';
