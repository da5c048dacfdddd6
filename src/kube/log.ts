/** The log of `src/kube/`, mostly of faults from which it recovers. Fields are plain values, never credentials or objects. */
export interface KubeLog {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

const nothing = (): void => {};

/** Drops every line. */
export const silentLog: KubeLog = { debug: nothing, info: nothing, warn: nothing, error: nothing };
