// hydra-client KIND --group G --first-id N --count C: a group of Hydra clients; see docs/control-protocol.md.
#include <cstdio>
#include <exception>

#include "common/environment.h"
#include "common/group.h"
#include "common/options.h"
#include "systems.h"

namespace {

int run(int argc, char** argv) {
    const hydra::Systems systems = hydra::offered_systems();
    const hydra::Options options = hydra::parse_options(argc, argv, systems);
    const hydra::Environment environment = hydra::read_environment();
    options.kind.system->check(options.kind.role);
    return hydra::run_group(options, environment);
}

int complain(const std::exception& e, int exit_code) {
    std::fprintf(stderr, "hydra-client: %s\n", e.what());
    return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const hydra::UsageError& e) {
        return complain(e, hydra::kExitUsage);
    } catch (const hydra::EnvironmentError& e) {
        return complain(e, hydra::kExitUsage);
    } catch (const std::exception& e) {
        return complain(e, 1);
    }
}
