import type { Registration } from '../registration.ts';

/** The registered components, as the controllers see them now. */
export interface Registry {
  get(component: string): Registration | undefined;
  all(): Iterable<Registration>;
  /** Why a registration cannot be used; undefined when it can. */
  refusal(component: string): string | undefined;
}
