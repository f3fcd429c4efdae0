// The entry point for Rancher Desktop itself, which the tool also drives: an application with its own settings version and `/v1` alone. This folder
// imports the client of our service, and only this file is imported from outside.
export { createForeignClient } from './client.ts';
export { layersOfApplication } from './layers.ts';
export { noteOtherApplication } from './notice.ts';
export { machineShell } from './shell.ts';
export { waitUntilReady } from './wait.ts';
