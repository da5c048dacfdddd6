import { isDeepStrictEqual } from 'node:util';
import { explain, explanationLines, firstViolation, isSame, violationWarning } from '../../access/policy/policy.ts';
import { sessionOf } from '../../access/policy/session-policy.ts';
import {
  authorCallerViolation,
  authorPermissionsViolation,
  permissionsHandedOut,
} from '../../access/policy/template-permissions.ts';
import {
  notPlanned,
  type TemplateInput,
  templatePolicy,
  templateWarnings,
} from '../../access/policy/template-policy.ts';
import { accessOfTemplate } from '../../api/access/kinds.ts';
import type { TemplateKind } from '../../api/access/names.ts';
import { readBySchema } from '../../api/schema/read.ts';
import { own } from '../../kit/json-value.ts';
import { deny, type Handler, invalidSpec } from '../decision.ts';
import type { AdmissionPorts } from '../ports.ts';

/**
 * Validating webhook of templates. It denies a spec that the server would never grant, or that hands out permissions that the caller does
 * not have, and warns if other objects would deny requests now. An update is denied only for violations that it introduces.
 */
export function validateTemplate(
  kind: TemplateKind,
  ports: Pick<
    AdmissionPorts,
    'missingPermissions' | 'grantable' | 'serverNamespace' | 'ownViolation' | 'presentViolation' | 'gatewayViolation'
  >,
): Handler {
  return {
    async decide({ operation, namespace, name, user, object, oldObject, dryRun }, signal, address) {
      const details = { template: name };
      const raw = own(object, 'spec');
      // Metadata of a template that predates a rule can still change, so that it can be labeled, annotated, and deleted.
      if (operation === 'UPDATE' && isDeepStrictEqual(raw, own(oldObject, 'spec'))) return { details };
      const read = readBySchema<TemplateInput['spec']>(accessOfTemplate(kind).template.structural.spec, raw, 'spec');
      if (!read.ok) return invalidSpec(read.errors);
      const { grantable, serverNamespace } = ports;
      const input: TemplateInput = { kind, namespace, name, spec: read.value, grantable, serverNamespace };
      const stored = operation === 'UPDATE' ? storedInput(input, own(oldObject, 'spec')) : undefined;
      const violation = firstViolation(templatePolicy, input, stored);
      const explanation = dryRun ? explanationLines(explain(templatePolicy, input)) : [];
      if (violation) return { ...deny(violation, details), warnings: explanation };
      const callerViolation = authorCallerViolation(user, read.value);
      if (callerViolation) return { ...deny(callerViolation, details), warnings: explanation };
      const missing = await ports.missingPermissions(user, namespace, permissionsHandedOut(input), signal);
      const permissionsViolation = authorPermissionsViolation(user.username, namespace, missing);
      if (permissionsViolation) return { ...deny(permissionsViolation, details), warnings: explanation };
      const planned = await ports.ownViolation(input, address, signal);
      if (planned && planned !== notPlanned) {
        const before = stored && (await ports.ownViolation(stored, address, signal));
        // If the stored spec could not be planned, it is unknown whether the update introduced the violation. Allow it: the leader denies
        // requests.
        if (before !== notPlanned && !isSame(planned, before)) {
          return { ...deny(planned, details), warnings: explanation };
        }
      }
      // These violations depend on other objects, which users may create or correct later. So they are warnings.
      const remaining =
        firstViolation(templatePolicy, input) ?? planned ?? (await ports.presentViolation(input, address, signal));
      const unusable = remaining ? [remaining === notPlanned ? notPlannedWarning : violationWarning(remaining)] : [];
      const gateway = sessionOf(read.value.accessConfig) && ports.gatewayViolation();
      if (gateway) unusable.push(violationWarning(gateway));
      return { details, warnings: [...unusable, ...templateWarnings(input), ...explanation] };
    },
  };
}

const notPlannedWarning =
  'the server did not check whether requests can use this template, because too many such checks wait; ' +
  'to check it later, apply it again with --dry-run=server';

/** The input for the spec before an update; undefined if that spec violates its schema. */
function storedInput(input: TemplateInput, oldSpec: unknown): TemplateInput | undefined {
  const read = readBySchema<TemplateInput['spec']>(
    accessOfTemplate(input.kind).template.structural.spec,
    oldSpec,
    'spec',
  );
  return read.ok ? { ...input, spec: read.value } : undefined;
}
