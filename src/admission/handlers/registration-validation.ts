import { isDeepStrictEqual } from 'node:util';
import { type ComponentReconciler, componentReconcilerKind } from '../../api/inventory/component-reconciler.ts';
import { readBySchema } from '../../api/schema/read.ts';
import { hasRuns, registrationViolation } from '../../inventory/policy/registration-rules.ts';
import { own } from '../../kit/json-value.ts';
import { compileSelector } from '../../kit/label-selector.ts';
import { allow, type Handler, invalidSpec, refuse } from '../decision.ts';
import type { InventoryPorts } from '../ports.ts';

type Ports = Pick<InventoryPorts, 'registrations' | 'anyRunOf'>;

/** Validating webhook of the registrations: one owner a path, no component that wakes itself, none gone while it is needed. */
export function judgeRegistration({ registrations, anyRunOf }: Ports): Handler {
  return {
    async decide({ operation, name: asked, object, oldObject }, signal) {
      // Without a name come those that are deleted as a collection, and those whose name is generated.
      const name = asked || String(own(own(object ?? oldObject, 'metadata'), 'name') ?? '');
      if (operation === 'DELETE') {
        const run = await anyRunOf(name, signal);
        return run === undefined ? allow : refuse(hasRuns(name, run));
      }
      const raw = own(object, 'spec');
      // One that was stored before a rule existed can still be labelled and let go of.
      if (operation === 'UPDATE' && isDeepStrictEqual(raw, own(oldObject, 'spec'))) return allow;
      const read = readBySchema<ComponentReconciler['spec']>(componentReconcilerKind.structural.spec, raw, 'spec');
      if (!read.ok) return invalidSpec(read.errors);
      const selector = compileSelector(read.value.selector ?? {});
      if ('error' in selector) return invalidSpec([{ field: 'spec.selector', message: selector.error }]);
      const violation = registrationViolation({ name, spec: read.value }, await registrations(signal));
      return violation ? refuse(violation) : allow;
    },
  };
}
