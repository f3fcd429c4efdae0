import { COMPATIBLE } from '../src/product.ts';

/** Summary of the flag `--adopt` of the commands that start a service. */
export const ADOPT = `With RDCTL_COMPAT: take over the directories that ${COMPATIBLE.productName} made; its settings are copied first`;
