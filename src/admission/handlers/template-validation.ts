import { isDeepStrictEqual } from 'node:util';
import { explain, explanationLines, firstViolation } from '../../access/policy/policy.ts';
import {
  authorCallerViolation,
  authorPermissionsViolation,
  permissionsHandedOut,
} from '../../access/policy/template-permissions.ts';
import { type TemplateInput, templatePolicy, templateWarnings } from '../../access/policy/template-policy.ts';
import { accessOfTemplate } from '../../api/access/kinds.ts';
import type { TemplateKind } from '../../api/access/names.ts';
import { readBySchema } from '../../api/schema/read.ts';
import { own } from '../../kit/json-value.ts';
import { deny, type Handler, invalidSpec } from '../decision.ts';
import type { AdmissionPorts } from '../ports.ts';

/**
 * Validating webhook of templates. It denies a new or changed spec that could never be granted. It also denies one that hands out
 * permissions that the caller does not have. So the caller sees the error.
 */
export function validateTemplate(
  kind: TemplateKind,
  ports: Pick<AdmissionPorts, 'missingPermissions' | 'grantable'>,
): Handler {
  return {
    async decide({ operation, namespace, name, user, object, oldObject, dryRun }, signal) {
      const details = { template: name };
      const raw = own(object, 'spec');
      // Metadata of a template that predates a rule can still change, so that it can be labeled, annotated, and deleted.
      if (operation === 'UPDATE' && isDeepStrictEqual(raw, own(oldObject, 'spec'))) return { details };
      const read = readBySchema<TemplateInput['spec']>(accessOfTemplate(kind).template.structural.spec, raw, 'spec');
      if (!read.ok) return invalidSpec(read.errors);
      const input: TemplateInput = { kind, namespace, name, spec: read.value, grantable: ports.grantable };
      const violation = firstViolation(templatePolicy, input);
      const explanation = dryRun ? explanationLines(explain(templatePolicy, input)) : [];
      if (violation) return { ...deny(violation, details), warnings: explanation };
      const callerViolation = authorCallerViolation(user, read.value);
      if (callerViolation) return { ...deny(callerViolation, details), warnings: explanation };
      const missing = await ports.missingPermissions(user, namespace, permissionsHandedOut(input), signal);
      const permissionsViolation = authorPermissionsViolation(user.username, namespace, missing);
      if (permissionsViolation) return { ...deny(permissionsViolation, details), warnings: explanation };
      return { details, warnings: [...templateWarnings(input), ...explanation] };
    },
  };
}
