#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "common/options.h"
#include "common/system_options.h"

using namespace hydra;

namespace {

// A system that common/ does not know, with its own option.
class Toy final : public System {
  public:
    Toy(std::string name, std::string option) : name_(std::move(name)), option_(std::move(option)) {}

    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] std::map<std::string, std::string> versions() const override { return {}; }
    void add_options(CLI::App& app) override { add_whole_number(app, option_, depth, "", 0, 9); }
    [[nodiscard]] std::unique_ptr<PublisherTransport> open_publisher(zmq::context_t&) const override {
        return nullptr;
    }
    [[nodiscard]] std::unique_ptr<SubscriberTransport> open_subscriber(zmq::context_t&) const override {
        return nullptr;
    }

    int depth = 1;

  private:
    std::string name_;
    std::string option_;
};

Systems systems() {
    Systems all;
    all.push_back(std::make_unique<Toy>("post", "--letters"));
    all.push_back(std::make_unique<Toy>("radio-sub", "--waves"));
    return all;
}

Options parse(const Systems& systems, std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), {"hydra-client", "--group=g", "--first-id=7", "--count=3"});
    return parse_options(static_cast<int>(arguments.size()), arguments.data(), systems);
}

std::string refusal(std::vector<const char*> arguments) {
    try {
        parse(systems(), std::move(arguments));
        return "";
    } catch (const UsageError& e) {
        return e.what();
    }
}

}  // namespace

TEST_CASE("a kind is a system and a role") {
    const Systems all = systems();
    const Kind publisher = parse(all, {"radio-sub-pub"}).kind;
    CHECK(publisher.system == all[1].get());
    CHECK(publisher.role == Role::publisher);
    CHECK(publisher.name() == "radio-sub-pub");
    const Kind subscriber = parse(all, {"post-sub"}).kind;
    CHECK(subscriber.system == all[0].get());
    CHECK(subscriber.role == Role::subscriber);
    CHECK(refusal({"post"}).find("post") != std::string::npos);
}

TEST_CASE("a system has options of its own, which are refused with another's kinds") {
    const Systems all = systems();
    CHECK(parse(all, {"post-sub", "--letters", "5", "--respawns", "0"}).respawns == 0);
    CHECK(dynamic_cast<const Toy&>(*all[0]).depth == 5);
    CHECK(dynamic_cast<const Toy&>(*all[1]).depth == 1);
    CHECK(refusal({"radio-sub-pub", "--letters", "5"}) ==
          "--letters is an option of the kinds post-pub and post-sub, not of radio-sub-pub; see --help");
    CHECK(refusal({"post-sub", "--letters", "5", "--letters", "6"}).find("--letters") != std::string::npos);
}

TEST_CASE("only subscribers are packed, whatever their system is called") {
    CHECK(parse(systems(), {"radio-sub-sub", "--clients-per-process", "2"}).clients_per_process == 2);
    CHECK(refusal({"radio-sub-pub", "--clients-per-process", "2"}).find("is for subscribers only") !=
          std::string::npos);
    CHECK(refusal({"post-pub", "--clients-per-process", "1"}).empty());
}

TEST_CASE("invalid arguments give one line") {
    for (const std::vector<const char*>& arguments :
         std::vector<std::vector<const char*>>{{},
                                               {"post-sub", "--unknown"},
                                               {"post-sub", "--respawns=-1"},
                                               {"post-sub", "--fork-window=0"},
                                               {"post-sub", "--pacing=odd"},
                                               {"post-sub", "--respawns=0x1"}}) {
        const std::string line = refusal(arguments);
        CAPTURE(line);
        CHECK(line.ends_with("; see --help"));
        CHECK(line.find('\n') == std::string::npos);
    }
}
