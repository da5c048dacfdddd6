import { accessControllers } from './access/controllers.ts';
import type { Controller } from './engine/controller.ts';

type AccessDeps = Parameters<typeof accessControllers>[0];

/** Every loop of the system, by half, in the order in which they start. */
export function controllers(deps: { readonly access: AccessDeps }): { readonly access: readonly Controller[] } {
  return {
    // Templates and requests of both kinds: who gets into which pod, until when.
    access: accessControllers(deps.access),
  };
}
