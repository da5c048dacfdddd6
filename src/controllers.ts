import { accessControllers } from './access/controllers.ts';
import { certificateControllers } from './certificates/controllers.ts';
import type { Controller } from './engine/controller.ts';

interface Deps {
  readonly access: Parameters<typeof accessControllers>[0];
  /** Absent when the certificate comes from files. */
  readonly certificates: Parameters<typeof certificateControllers>[0] | undefined;
}

/** Every loop of the system, by half, in the order in which they start. */
export function controllers(deps: Deps): Readonly<Record<keyof Deps, readonly Controller[]>> {
  return {
    // Templates and requests of both kinds: who gets into which pod, until when.
    access: accessControllers(deps.access),
    // The serving certificate. After the others: closing access on time must not wait for it.
    certificates: deps.certificates ? certificateControllers(deps.certificates) : [],
  };
}
