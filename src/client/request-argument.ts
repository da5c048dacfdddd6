import type { ArgumentSpec } from './command-spec.ts';

/** `NAME`, `pod/NAME`, or `exec/NAME`. */
export const requestArgument: ArgumentSpec = { name: 'REQUEST', complete: 'requests' };
