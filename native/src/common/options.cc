#include "common/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "common/system_options.h"

namespace hydra {
namespace {

[[noreturn]] void refuse(const std::string& message) {
    throw UsageError(message + "; see --help");
}

std::string first_line(std::string text) {
    return text.substr(0, text.find('\n'));
}

// Digits only: the library's own conversion accepts more.
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
    return CLI::Validator(
        [least, most](std::string& text) -> std::string {
            std::uint64_t value = 0;
            const char* end = text.data() + text.size();
            const auto [stopped, error] = std::from_chars(text.data(), end, value);
            if (error == std::errc() && stopped == end && value >= least && value <= most) {
                return "";
            }
            return "'" + text + "' is no whole number from " + std::to_string(least) + " to " +
                   std::to_string(most);
        },
        "N");
}

std::string heading(const System& system) {
    return "Options of " + system.name();
}

std::string kinds_of(const System& system) {
    const std::string publisher = Kind{&system, Role::publisher}.name();
    const std::string subscriber = Kind{&system, Role::subscriber}.name();
    if (system.offers(Role::publisher) && system.offers(Role::subscriber)) {
        return "the kinds " + publisher + " and " + subscriber;
    }
    return "the kind " + (system.offers(Role::publisher) ? publisher : subscriber);
}

// This release, and the libraries that it was built with or has found.
std::string versions(const Systems& systems) {
    std::map<std::string, std::string> libraries;
    for (const auto& system : systems) {
        libraries.merge(system->versions());
    }
    std::string text = "hydra-client " HYDRA_VERSION;
    for (const auto& [library, version] : libraries) {
        text += "\n" + library + " " + version;
    }
    return text;
}

// The systems whose clients can use TLS; hydra/native/client_command.py reads it in the help.
std::string with_tls(const Systems& systems) {
    std::string text = "TLS:";
    for (const auto& system : systems) {
        text += system->has_tls() ? " " + system->name() : "";
    }
    return text;
}

// An option of another system is an error: a user would expect --secure to have its effect.
void refuse_options_of_others(const CLI::App& app, const Kind& kind, const Systems& systems) {
    for (const auto& system : systems) {
        for (const CLI::Option* option : app.get_options()) {
            if (system.get() != kind.system && option->count() > 0 &&
                option->get_group() == heading(*system)) {
                refuse(option->get_name() + " is an option of " + kinds_of(*system) + ", not of " +
                       kind.name());
            }
        }
    }
}

}  // namespace

void add_whole_number(CLI::App& app, const std::string& name, int& into, const std::string& text,
                      std::uint64_t least, std::uint64_t most) {
    app.add_option(name, into, text)->check(whole_number(least, most));
}

void add_choice(CLI::App& app, const std::string& name, const std::function<void(const std::string&)>& into,
                const std::string& text, const std::vector<std::string>& words) {
    app.add_option_function<std::string>(name, into, text)->check(CLI::IsMember(words));
}

void add_flag(CLI::App& app, const std::string& name, bool& into, const std::string& text) {
    app.add_flag(name, into, text);
}

Options parse_options(int argc, const char* const* argv, const Systems& systems) {
    constexpr std::uint64_t most = UINT32_MAX;
    Options options;
    std::map<std::string, Kind> kinds;
    for (const auto& system : systems) {
        for (const Role role : {Role::publisher, Role::subscriber}) {
            if (system->offers(role)) {
                const Kind kind{system.get(), role};
                kinds[kind.name()] = kind;
            }
        }
    }
    std::string kind;
    std::string pacing = "smooth";
    CLI::App app("A group of Hydra clients; started by hydra on an agent.", "hydra-client");
    app.set_version_flag(
        "--version", [&systems] { return versions(systems); },
        "print the release and the versions of its libraries");
    app.footer([&systems] { return with_tls(systems); });
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    app.add_option("kind", kind)->required()->check(CLI::IsMember(kinds));
    app.add_option("--group", options.group, "id of the process group")->required();
    app.add_option("--first-id", options.first_id, "id of the first client of the process group")
        ->required()
        ->check(whole_number(0, most));
    app.add_option("--count", options.count, "number of clients to fork")
        ->required()
        ->check(whole_number(1, most));
    app.add_option("--fork-window", options.fork_window, "most forked clients that wait for their welcome")
        ->check(whole_number(1, most));
    app.add_option("--respawns", options.respawns, "how often a client that died is replaced")
        ->check(whole_number(0, most));
    app.add_option("--clients-per-process", options.clients_per_process,
                   "number of subscribers in one process")
        ->check(whole_number(1, most));
    app.add_option("--pacing", pacing, "bursty: send the messages of each second at its start")
        ->check(CLI::IsMember(std::vector<std::string>{"smooth", "bursty"}));
    for (const auto& system : systems) {
        app.option_defaults()->group(heading(*system));
        system->add_options(app);
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        std::fputs(app.help().c_str(), stdout);
        std::exit(0);
    } catch (const CLI::CallForVersion& e) {
        std::puts(e.what());
        std::exit(0);
    } catch (const CLI::Error& e) {
        refuse(first_line(e.what()));
    }
    options.kind = kinds.at(kind);
    refuse_options_of_others(app, options.kind, systems);
    if (options.group.size() > kMaxTextCharacters) {
        refuse("--group is longer than 4096 characters");
    }
    if (options.count - 1 > UINT32_MAX - options.first_id) {
        refuse("the last id, --first-id + --count - 1, is above 4294967295");
    }
    if (options.clients_per_process > 1 && options.kind.role != Role::subscriber) {
        refuse("--clients-per-process is for subscribers only");
    }
    options.pacing = pacing == "bursty" ? Pacing::bursty : Pacing::smooth;
    return options;
}

}  // namespace hydra
