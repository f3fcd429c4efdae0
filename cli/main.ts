#!/usr/bin/env node
import { runProcess } from './process.ts';

// The entry point of the package: a script that Node runs.

runProcess([process.execPath, process.argv[1] ?? ''], process.argv.slice(2));
