// hydra-client KIND --group G --first-id N --count C: a group of Hydra clients; see docs/control-protocol.md.
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "common/client_process.h"
#include "common/environment.h"
#include "common/linux_process.h"
#include "common/options.h"
#include "common/process_group.h"
#include "systems.h"

namespace {

// Every client is a fork of this process, and would look up the functions of shared libraries by itself: with
// 10,240 clients that took a third of the time until they were ready. With this variable at its start, the
// loader does it once, before the first fork. The process executes its own path, so it keeps its name;
// if that fails, the start is only slower.
void begin_with_functions_looked_up(char** argv) {
    if (std::getenv("LD_BIND_NOW") != nullptr) {
        return;
    }
    std::string path(PATH_MAX, '\0');
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
    if (length <= 0 || static_cast<std::size_t>(length) == path.size()) {
        return;
    }
    path.resize(static_cast<std::size_t>(length));
    setenv("LD_BIND_NOW", "1", 1);
    execv(path.c_str(), argv);
}

int run(int argc, char** argv) {
    const hydra::Systems systems = hydra::offered_systems();
    const hydra::Options options = hydra::parse_options(argc, argv, systems);
    const hydra::Environment environment = hydra::read_environment();
    hydra::confine_to(hydra::variable("HYDRA_CPUS"));
    options.kind.system->check(options.kind.role);
    return hydra::run_group(options, environment);
}

int complain(const std::exception& e, int exit_code) {
    std::fprintf(stderr, "hydra-client: %s\n", e.what());
    return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
    begin_with_functions_looked_up(argv);
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
