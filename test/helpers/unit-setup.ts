import { stayInProcess } from './in-process.ts';

stayInProcess();
