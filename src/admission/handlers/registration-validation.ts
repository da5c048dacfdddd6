import { isDeepStrictEqual } from 'node:util';
import { type ComponentReconciler, componentReconcilerKind } from '../../api/inventory/component-reconciler.ts';
import { readBySchema } from '../../api/schema/read.ts';
import { hasRunsViolation, registrationViolation, unusableField } from '../../inventory/policy/registration-rules.ts';
import { own } from '../../kit/json-value.ts';
import { allow, deny, type Handler, invalidSpec } from '../decision.ts';
import type { InventoryPorts } from '../ports.ts';

type Ports = Pick<InventoryPorts, 'registrations' | 'entriesOf'>;

/**
 * Validating webhook of registrations: denies a new spec that is unusable, overlaps another
 * component's paths, or reads what it writes, and the deletion of a component with run records.
 */
export function validateRegistration({ registrations, entriesOf }: Ports): Handler {
  return {
    async decide({ operation, name: reviewName, object, oldObject }, signal) {
      // The review of a deletecollection has no name.
      const name = reviewName || String(own(own(object ?? oldObject, 'metadata'), 'name') ?? '');
      if (operation === 'DELETE') {
        const entries = await entriesOf(name, signal);
        return entries.length === 0 ? allow : deny(hasRunsViolation(name, entries));
      }
      const raw = own(object, 'spec');
      // Metadata of a registration that predates a rule can change, so that it can be deleted.
      if (operation === 'UPDATE' && isDeepStrictEqual(raw, own(oldObject, 'spec'))) return allow;
      const read = readBySchema<ComponentReconciler['spec']>(componentReconcilerKind.structural.spec, raw, 'spec');
      if (!read.ok) return invalidSpec(read.errors);
      const unusable = unusableField(read.value);
      if (unusable) return invalidSpec([{ ...unusable, field: `spec.${unusable.field}` }]);
      const violation = registrationViolation({ name, spec: read.value }, await registrations(signal));
      return violation ? deny(violation) : allow;
    },
  };
}
